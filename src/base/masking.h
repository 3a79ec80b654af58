#pragma once

#include <span>
#include <string>

namespace rlock {

/// The arguments of a command, joined by spaces, for people to read, with "***" for what looks like a password:
/// --password X, --api-token=X, PGPASSWORD=X, //user:X@host, -u user:X, `mysql -pX`, and the same inside the argument
/// of `sh -c`. Nobody may rely on that, since nobody knows the options of all programs.
std::string mask_arguments(std::span<const std::string> arguments);

}  // namespace rlock
