#pragma once

#include <span>

namespace rlock::redis {

/// Overwrites the password of a URL where it stands: in an argument of ours, which ps shows as long as we run.
void blot_password(std::span<char> url);

}  // namespace rlock::redis
