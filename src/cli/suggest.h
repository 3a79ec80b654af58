#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlock::cli {

/// "; did you mean WORD?" with the candidate that a slip or two of the finger away from `word` stands, else nothing.
std::string did_you_mean(std::string_view word,
                         std::span<const std::string_view> candidates,
                         std::string_view prefix = {});

}  // namespace rlock::cli
