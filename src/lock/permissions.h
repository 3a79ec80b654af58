#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace rlock::lock {

/// What the rules must allow for.
struct Use {
  bool channels = true;  // the server has rules for channels (since 6.2)
  bool database = true;  // another database than 0
  bool sentinel = true;
  bool cluster = true;
};

/// The rules of ACL SETUSER (keys, channels, commands) that a Redis user needs for the locks under a prefix. They are
/// one line for redis-cli: what is blank, a quote or not printable ASCII in the prefix is matched by a question mark.
std::string needed_permissions(std::string_view prefix, Use use);

/// The same failure; if a permission is missing, its message also says where to find what is needed, and which keys, if
/// it is about those.
Error advise_on_permissions(const Error& error, std::string_view prefix);

}  // namespace rlock::lock
