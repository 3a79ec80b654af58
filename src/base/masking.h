#pragma once

#include <span>
#include <string>

namespace rlock {

/// The arguments of a command, joined by spaces, for people to read: what looks like a password is "***". This is a net
/// and not a promise, since nobody knows the options of all programs: --password X, --api-token=X, PGPASSWORD=X,
/// //user:X@host, -u user:X, `mysql -pX`, and the same inside the argument of `sh -c`.
std::string mask_arguments(std::span<const std::string> arguments);

}  // namespace rlock
