#pragma once

#include <cstddef>
#include <string_view>

namespace rlock::fuzz {

/// Whether no byte of the text controls a terminal: C0 and DEL, and in UTF-8 C1.
inline bool is_printable_line(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte < 0x20 || byte == 0x7F || (byte == 0xC2 && next < 0xA0))
      return false;
  }
  return true;
}

}  // namespace rlock::fuzz
