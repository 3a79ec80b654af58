#pragma once

#include <span>

namespace rlock::redis {

/// Overwrites the password of a URL in place: in our own arguments, which ps shows while we run.
void blot_password(std::span<char> url);

}  // namespace rlock::redis
