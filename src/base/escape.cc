#include "base/escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/columns.h"

namespace rlock {
namespace {

/// Control characters, and those that reorder, hide or break the line (Unicode: Cc, bidi controls, default-ignorables).
constexpr CodeRange unsafe[] = {{0x00, 0x1F},     {0x7F, 0x9F},       {0xAD, 0xAD},       {0x34F, 0x34F},
                                {0x61C, 0x61C},   {0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},
                                {0x200B, 0x200F}, {0x2028, 0x202E},   {0x2060, 0x206F},   {0x3164, 0x3164},
                                {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},
                                {0xFFFE, 0xFFFF}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

bool is_unsafe(char32_t c) { return is_in(unsafe, c); }

/// How many printable ASCII characters the text begins with. Most text is nothing else, and needs no work.
std::size_t count_plain(std::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; });
  return static_cast<std::size_t>(end - text.begin());
}

std::string printable_escape(CodePoint c) {
  const auto value = static_cast<std::uint32_t>(c.value);
  if (!c.valid || value < 0x80) {
    if (value == '\n')
      return "\\n";
    if (value == '\t')
      return "\\t";
    if (value == '\r')
      return "\\r";
    return fmt::format("\\x{:02x}", value);
  }
  return fmt::format("\\u{{{:x}}}", value);
}

std::string json_escape(char32_t c) {
  const auto value = static_cast<std::uint32_t>(c);
  if (value == '\n')
    return "\\n";
  if (value == '\t')
    return "\\t";
  if (value < 0x10000)
    return fmt::format("\\u{:04x}", value);
  const std::uint32_t rest = value - 0x10000;  // a surrogate pair
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10U), 0xDC00 + (rest & 0x3FFU));
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const std::size_t plain = count_plain(text);
    out.append(text, 0, plain);
    text.remove_prefix(plain);
    if (text.empty())
      return out;
    const CodePoint c = decode_utf8(text);
    if (c.valid && !is_unsafe(c.value)) {
      out += text.substr(0, c.length);
    } else {
      out += printable_escape(c);
    }
    text.remove_prefix(c.length);
  }
}

std::string json_string(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  while (!text.empty()) {
    const std::string_view run = text.substr(0, count_plain(text));
    const std::size_t plain = std::min(run.size(), run.find_first_of("\"\\"));
    out.append(text, 0, plain);
    text.remove_prefix(plain);
    if (text.empty())
      break;
    const CodePoint c = decode_utf8(text);
    if (!c.valid) {
      out += "\xEF\xBF\xBD";
    } else if (c.value == '"' || c.value == '\\') {
      out += '\\';
      out += text[0];
    } else if (is_unsafe(c.value)) {
      out += json_escape(c.value);
    } else {
      out += text.substr(0, c.length);
    }
    text.remove_prefix(c.length);
  }
  return out + '"';
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return c == '/' || (is_unreserved(c) && c != '~');
  };  // a shell expands ~ to a home directory
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain))
    return std::string{text};
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string visible_shell_word(std::string_view text) {
  if (printable(text) == text)
    return shell_word(text);
  std::string out = "$'";
  for (const char c : text) {
    const bool is_plain = c > ' ' && c < 0x7F && c != '\'' && c != '\\';
    out += is_plain ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return out + "'";
}

std::string glob_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\')
      out += '\\';
    out += c;
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<std::uint8_t>(c));
    }
  }
  return out;
}

std::optional<std::string> percent_decode(std::string_view text) {
  if (text.find('%') == std::string_view::npos)
    return std::string{text};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    std::uint8_t byte = 0;
    const char* const digits = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2 || byte == 0)
      return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

}  // namespace rlock
