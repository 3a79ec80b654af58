#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace rlock::lock {

/// What a Redis user needs for the locks under a prefix, as the rules of ACL SETUSER: keys, channels, commands.
std::string needed_permissions(std::string_view prefix);

/// The failure; with what is needed, where it is a permission that is missing.
Error explain(const Error& error, std::string_view prefix);

}  // namespace rlock::lock
