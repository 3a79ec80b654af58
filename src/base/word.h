#pragma once

#include <algorithm>
#include <string_view>

namespace rlock {

/// Removes the first word of `rest` and the separator after it, and returns the word. Without a separator that is all
/// of `rest`.
inline std::string_view take_word(std::string_view& rest, char separator = ' ') {
  const auto end = std::min(rest.find(separator), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

}  // namespace rlock
