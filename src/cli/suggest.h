#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlock::cli {

/// Returns "; did you mean WORD?" with the candidate nearest to `word`, if it is only a typing error away; else an
/// empty string.
std::string did_you_mean(std::string_view word,
                         std::span<const std::string_view> candidates,
                         std::string_view prefix = {});

}  // namespace rlock::cli
