#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rlock::fuzz {

/// Reads one JSON text as RFC 8259 has it and not a bit more: no control character, no broken UTF-8, no lone surrogate
/// in a string, no number with a leading zero, no comma too many.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  bool document() {
    const bool valid = value();
    blanks();
    return valid && rest_.empty();
  }

 private:
  bool value() {
    blanks();
    if (take('['))
      return items(']', [this] { return value(); });
    if (take('{'))
      return items('}', [this] { return member(); });
    if (take('"'))
      return string();
    return word("null") || word("true") || word("false") || number();
  }

  template <typename Item>
  bool items(char end, Item item) {
    blanks();
    if (take(end))
      return true;
    do {
      if (!item())
        return false;
      blanks();
    } while (take(','));
    return take(end);
  }

  bool member() {
    blanks();
    if (!take('"') || !string())
      return false;
    blanks();
    return take(':') && value();
  }

  bool number() {
    take('-');
    if (!take('0') && !digits())
      return false;
    if (take('.') && !digits())
      return false;
    if (!take('e') && !take('E'))
      return true;
    take('+') || take('-');
    return digits();
  }

  bool digits() {
    const std::size_t before = rest_.size();
    while (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_[0])) != 0) rest_.remove_prefix(1);
    return rest_.size() < before;
  }

  /// What follows its first quote.
  bool string() {
    while (!rest_.empty()) {
      if (take('"'))
        return true;
      if (take('\\') ? !escape() : !character())
        return false;
    }
    return false;
  }

  bool escape() {
    if (!take('u'))
      return !rest_.empty() && std::string_view{"\"\\/bfnrt"}.find(rest_[0]) != std::string_view::npos &&
             take(rest_[0]);
    const int first = code_unit();
    if (first < 0xD800 || first > 0xDFFF)
      return first >= 0;
    if (first > 0xDBFF || !take('\\') || !take('u'))
      return false;
    const int second = code_unit();
    return second >= 0xDC00 && second <= 0xDFFF;
  }

  /// -1: not four hexadecimal digits.
  int code_unit() {
    int unit = 0;
    for (int i = 0; i < 4; ++i) {
      const auto digit = rest_.empty() ? std::string_view::npos : hex_digits.find(rest_[0]);
      if (digit == std::string_view::npos)
        return -1;
      unit = unit * 16 + static_cast<int>(digit < 16 ? digit : digit - 6);
      rest_.remove_prefix(1);
    }
    return unit;
  }

  /// One of RFC 3629, unescaped.
  bool character() {
    const auto first = byte(0);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first < 0x20 || (first >= 0x80 && first < 0xC2) || first > 0xF4 || rest_.size() < length)
      return false;
    for (std::size_t i = 1; i < length; ++i) {
      if ((byte(i) & 0xC0U) != 0x80)
        return false;
    }
    const auto second = length > 1 ? byte(1) : 0;
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
        (first == 0xF4 && second > 0x8F))
      return false;
    rest_.remove_prefix(length);
    return true;
  }

  std::uint8_t byte(std::size_t i) const { return static_cast<std::uint8_t>(rest_[i]); }

  void blanks() {
    while (take(' ') || take('\n') || take('\r') || take('\t')) {
    }
  }

  bool word(std::string_view word) {
    if (!rest_.starts_with(word))
      return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool take(char c) {
    if (rest_.empty() || rest_[0] != c)
      return false;
    rest_.remove_prefix(1);
    return true;
  }

  static constexpr std::string_view hex_digits = "0123456789abcdefABCDEF";
  std::string_view rest_;
};

inline bool is_json(std::string_view text) { return JsonReader{text}.document(); }

}  // namespace rlock::fuzz
