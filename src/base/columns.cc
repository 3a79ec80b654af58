#include "base/columns.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"

namespace rlock {
namespace {

using Range = std::pair<char32_t, char32_t>;

/// The large blocks of Unicode's EastAsianWidth W and F; the small ones are rare in practice.
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

std::size_t width(const CodePoint& c) {
  if (is_in(combining, c.value))
    return 0;
  return is_in(wide, c.value) ? 2 : 1;
}

}  // namespace

std::size_t count_columns(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }))
    return text.size();
  std::size_t columns = 0;
  while (!text.empty()) {
    const CodePoint c = decode_utf8(text);
    columns += width(c);
    text.remove_prefix(c.length);
  }
  return columns;
}

std::string cut_to_columns(std::string_view text, std::size_t columns) {
  if (count_columns(text) <= columns)
    return std::string{text};
  std::size_t taken = 0;
  std::size_t bytes = 0;
  for (;;) {
    const CodePoint c = decode_utf8(text.substr(bytes));
    if (taken + width(c) + 1 > columns)  // one column is for the ellipsis
      return std::string{text.substr(0, bytes)} + "…";
    taken += width(c);
    bytes += c.length;
  }
}

}  // namespace rlock
