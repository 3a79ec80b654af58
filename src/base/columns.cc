#include "base/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace rlock {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t i) { return static_cast<std::uint8_t>(text[i]); }

/// Unicode's EastAsianWidth W and F: the large blocks, and those signs outside them that people put into a note.
constexpr std::array<CodeRange, 32> wide{
    {{0x1100, 0x115F},   {0x231A, 0x231B},  {0x23E9, 0x23EC}, {0x23F0, 0x23F0}, {0x23F3, 0x23F3}, {0x25FD, 0x25FE},
     {0x2614, 0x2615},   {0x2648, 0x2653},  {0x26A1, 0x26A1}, {0x26AA, 0x26AB}, {0x26BD, 0x26BE}, {0x26C4, 0x26C5},
     {0x26D4, 0x26D4},   {0x2705, 0x2705},  {0x270A, 0x270B}, {0x2728, 0x2728}, {0x274C, 0x274C}, {0x274E, 0x274E},
     {0x2753, 0x2755},   {0x2757, 0x2757},  {0x2795, 0x2797}, {0x2B1B, 0x2B1C}, {0x2B50, 0x2B50}, {0x2B55, 0x2B55},
     {0x2E80, 0x303E},   {0x3041, 0xA4CF},  {0xAC00, 0xD7A3}, {0xF900, 0xFAFF}, {0xFE30, 0xFE6F}, {0xFF00, 0xFF60},
     {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}}};
constexpr std::array<CodeRange, 4> combining{{{0x300, 0x36F}, {0x483, 0x489}, {0x591, 0x5BD}, {0x20D0, 0x20FF}}};

std::size_t width(const CodePoint& c) {
  if (is_in(combining, c.value))
    return 0;
  return is_in(wide, c.value) ? 2 : 1;
}

}  // namespace

bool is_in(std::span<const CodeRange> ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(), [c](CodeRange r) { return c >= r.first && c <= r.second; });
}

CodePoint decode_utf8(std::string_view text) {
  const std::uint8_t first = byte_at(text, 0);
  if (first < 0x80)
    return {first, 1, true};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length)
    return {first};
  char32_t value = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80)
      return {first};
    value = (value << 6U) | (byte_at(text, i) & 0x3FU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || (value >= 0xD800 && value <= 0xDFFF) || value > 0x10FFFF)
    return {first};
  return {value, length, true};
}

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

std::string cut_to_columns(std::string_view text, std::size_t columns, bool utf8, Keep keep) {
  std::size_t over = count_columns(text);
  if (over <= columns)
    return std::string{text};
  const std::size_t kept = columns - 1;  // one column is for the ellipsis
  const std::size_t behind = keep == Keep::both_ends ? kept / 2 : 0;
  std::string_view tail = text;
  while (over > behind || (!tail.empty() && width(decode_utf8(tail)) == 0)) {  // a mark belongs to what is left out
    const CodePoint c = decode_utf8(tail);
    over -= width(c);
    tail.remove_prefix(c.length);
  }
  std::size_t taken = 0;
  std::size_t bytes = 0;
  for (CodePoint c = decode_utf8(text); taken + width(c) <= kept - behind; c = decode_utf8(text.substr(bytes))) {
    taken += width(c);
    bytes += c.length;
  }
  return fmt::format("{}{}{}", text.substr(0, bytes), utf8 ? "…" : "~", tail);
}

std::string_view take_row(std::string_view& text, std::size_t columns, std::string_view separator) {
  const bool splits_words = separator == " ";
  std::size_t taken = 0;
  std::size_t bytes = 0;
  std::size_t end = 0;  // of what fits, or of the first part that does not
  while (bytes < text.size()) {
    const CodePoint c = decode_utf8(text.substr(bytes));
    taken += width(c);
    if (text.substr(bytes).starts_with(separator) && (end == 0 || taken <= columns + 1))
      end = bytes;
    if (taken > columns && bytes > 0 && (end > 0 || splits_words))
      break;
    bytes += c.length;
  }
  const bool is_last = bytes == text.size();
  const std::string_view row = text.substr(0, is_last || end == 0 ? bytes : end);
  text.remove_prefix(row.size());
  if (text.starts_with(' '))
    text.remove_prefix(1);
  return row;
}

}  // namespace rlock
