#include "base/utf8.h"

#include <cstdint>

namespace rlock {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t i) { return static_cast<std::uint8_t>(text[i]); }

}  // namespace

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

}  // namespace rlock
