#include "base/columns.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rlock {
namespace {

using Range = std::pair<char32_t, char32_t>;

/// The large blocks of Unicode's EastAsianWidth W and F; the rest of them is rare.
constexpr std::array<Range, 9> wide{{{0x1100, 0x115F},
                                     {0x2E80, 0x303E},
                                     {0x3041, 0xA4CF},
                                     {0xAC00, 0xD7A3},
                                     {0xF900, 0xFAFF},
                                     {0xFE30, 0xFE6F},
                                     {0xFF00, 0xFF60},
                                     {0x1F300, 0x1FAFF},
                                     {0x20000, 0x3FFFD}}};
constexpr std::array<Range, 4> combining{{{0x300, 0x36F}, {0x483, 0x489}, {0x591, 0x5BD}, {0x20D0, 0x20FF}}};

template <std::size_t size>
bool is_in(const std::array<Range, size>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(), [c](Range r) { return c >= r.first && c <= r.second; });
}

struct Character {
  std::size_t bytes, columns;
};

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80)
    return {1, 1};
  const std::size_t bytes = std::min<std::size_t>(lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2, text.size());
  char32_t value = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) value = (value << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  if (is_in(combining, value))
    return {bytes, 0};
  return {bytes, is_in(wide, value) ? 2UL : 1UL};
}

}  // namespace

std::size_t count_columns(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character c = first_character(text);
    columns += c.columns;
    text.remove_prefix(c.bytes);
  }
  return columns;
}

std::string cut_to_columns(std::string_view text, std::size_t columns) {
  if (count_columns(text) <= columns)
    return std::string{text};
  std::size_t taken = 0;
  std::size_t bytes = 0;
  for (;;) {
    const Character c = first_character(text.substr(bytes));
    if (taken + c.columns + 1 > columns)  // one is for the ellipsis
      return std::string{text.substr(0, bytes)} + "…";
    taken += c.columns;
    bytes += c.bytes;
  }
}

}  // namespace rlock
