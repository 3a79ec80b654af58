#pragma once

#include <cstddef>
#include <string_view>

namespace rlock {

/// One character, and how many bytes it takes.
struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;
  bool valid = false;  // otherwise `value` is a single byte that is not UTF-8
};

/// Decodes the first character of a text that is not empty, by RFC 3629: no overlong forms, no surrogates, nothing
/// above U+10FFFF.
CodePoint decode_utf8(std::string_view text);

}  // namespace rlock
