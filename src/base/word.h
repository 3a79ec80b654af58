#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
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

/// Whether there is no other character in it; an empty text has none.
inline bool is_digits(std::string_view text) { return text.find_first_not_of("0123456789") == std::string_view::npos; }

/// Whether it may stand in the name of an option, a variable or a parameter.
inline bool is_part_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; }

/// With the letters of ASCII in lower case.
inline std::string lower(std::string_view text) {
  std::string out{text};
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// No number that Redis tells us is larger: Lua and JSON count in doubles, which skip whole numbers above it.
constexpr long long largest_whole = 1LL << 53;

/// Reads a whole decimal number in [low, high]; returns nothing unless all of the text is one.
template <typename Number>
std::optional<Number> parse_number(std::string_view text,
                                   Number low = std::numeric_limits<Number>::min(),
                                   Number high = std::numeric_limits<Number>::max()) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < low || value > high)
    return std::nullopt;
  return value;
}

}  // namespace rlock
