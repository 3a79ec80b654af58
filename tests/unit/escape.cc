#include "base/escape.h"

#include "base/clock.h"
#include "expect.h"

namespace rlock::unit {
namespace {

void shows(std::string_view text, std::string_view shown) {
  expect_same(printable(text), shown, "text is made safe for a terminal");
}

/// Every single byte is shown as itself if it is printable ASCII, else as an escape in printable ASCII.
void test_each_byte() {
  for (int i = 0; i < 256; ++i) {
    const std::string byte(1, static_cast<char>(i));
    const bool plain = i >= 0x20 && i < 0x7F;
    const std::string shown = printable(byte);
    expect(plain ? shown == byte : shown.size() > 1 && shown[0] == '\\', "each byte is shown", std::to_string(i));
    const std::string json = json_string(byte);
    if (i >= 0x80)
      expect_same(json, "\"\xEF\xBF\xBD\"", "a stray byte of UTF-8 becomes U+FFFD in JSON");
    if (i < 0x20 || i == '"' || i == '\\' || i == 0x7F)
      expect(json.size() > 3 && json[1] == '\\', "JSON has no control byte", std::to_string(i));
    const auto decoded = percent_decode(percent_encode(byte));
    expect(i == 0 ? !decoded : decoded == byte, "percent coding keeps each byte but NUL", std::to_string(i));
  }
}

void test_utf8() {
  shows("ключ ünï 日本 🔒", "ключ ünï 日本 🔒");
  shows("a\nb\tc\r", "a\\nb\\tc\\r");
  shows("\x1b[31m", "\\x1b[31m");
  shows("\xC2\x9B", "\\u{9b}");  // CSI in one code point
  shows(
      "\xE2\x80\xAE"
      "abc",
      "\\u{202e}abc");                                                        // right-to-left override
  shows("\xE2\x80\x8B\xEF\xBB\xBF", "\\u{200b}\\u{feff}");                    // zero width
  shows("\xF3\xA0\x81\x81", "\\u{e0041}");                                    // a tag
  shows("a\xCD\x8F\xE3\x85\xA4\xEF\xBE\xA0", "a\\u{34f}\\u{3164}\\u{ffa0}");  // a joiner and Hangul fillers
  shows("\xE1\x85\x9F\xE1\x9E\xB4\xE1\xA0\x8B\xF0\x9D\x85\xB3", "\\u{115f}\\u{17b4}\\u{180b}\\u{1d173}");
  shows("\xC0\x80\xC1\xBF", "\\xc0\\x80\\xc1\\xbf");  // overlong
  shows("\xE0\x9F\xBF", "\\xe0\\x9f\\xbf");
  shows("\xF0\x8F\xBF\xBF", "\\xf0\\x8f\\xbf\\xbf");
  shows("\xED\xA0\x80", "\\xed\\xa0\\x80");           // a surrogate
  shows("\xF4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  shows("\xF5\xFF", "\\xf5\\xff");
  shows("\xE6\x97", "\\xe6\\x97");  // cut short
  shows(
      "\xE6\x97"
      "a",
      "\\xe6\\x97"
      "a");
}

}  // namespace

void test_escapes() {
  test_each_byte();
  test_utf8();
  expect_same(json_string("a\"\\\n\t/ü"), R"("a\"\\\n\t/ü")", "JSON strings are escaped");
  expect_same(
      json_string("\xF3\xA0\x81\x81"), R"("\udb40\udc41")", "a code point beyond 16 bits is a surrogate pair in JSON");

  std::string foreign_words;
  for (int i = 0; i < 500'000; ++i) foreign_words += "é";
  const auto begin = BootClock::now();
  expect_same(json_string(foreign_words).size(), foreign_words.size() + 2, "JSON takes text of any language as it is");
  expect(BootClock::now() - begin < std::chrono::seconds{10}, "a megabyte of it takes no longer than its length");

  expect_same(shell_word("nightly-backup"), "nightly-backup", "a plain word stays as it is for a shell");
  expect_same(shell_word(""), "''", "an empty word is quoted for a shell");
  expect_same(
      shell_word("it's $x `y` \\"), R"('it'\''s $x `y` \')", "a word is quoted so that a shell expands nothing");

  expect_same(percent_encode("a b,c=d%é"), "a%20b%2Cc%3Dd%25%C3%A9", "separators are percent-encoded");
  for (const char* text : {"%", "%4", "%zz", "a%2", "%00", "%-1", "% 1"})
    expect(!percent_decode(text), "bad percent-encoding is refused", text);
  expect(percent_decode("%2f%2F+") == "//+", "both cases of hexadecimal digits are read, and + is +");

  expect_same(glob_escape("a*b?[c]\\"), R"(a\*b\?\[c\]\\)", "an escaped pattern matches only the text");
}

}  // namespace rlock::unit
