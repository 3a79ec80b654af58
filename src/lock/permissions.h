#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace rlock::lock {

/// What a user's rules depend on; by default everything.
struct Use {
  bool channels = true;  // the server knows rules for channels (since 6.2)
  bool database = true;  // another than 0
  bool sentinel = true;
  bool cluster = true;
};

/// What a Redis user needs for the locks under a prefix, as the rules of ACL SETUSER: keys, channels, commands. One
/// line that neither redis-cli nor a shell's double quotes take for something else.
std::string needed_permissions(std::string_view prefix, Use use = {});

/// The failure; with what is needed, where it is a permission that is missing.
Error explain(const Error& error, std::string_view prefix);

}  // namespace rlock::lock
