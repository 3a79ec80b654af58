#include "base/columns.h"

#include "expect.h"

namespace rlock::unit {
namespace {

std::string rows(std::string_view text, std::size_t columns, std::string_view separator = " ") {
  std::string out;
  while (!text.empty()) out += (out.empty() ? "" : "|") + std::string{take_row(text, columns, separator)};
  return out;
}

}  // namespace

void test_columns() {
  expect_same(count_columns("abc"), 3UL, "a letter takes a column");
  expect_same(count_columns("日本"), 4UL, "a wide character takes two columns");
  expect_same(count_columns("✅⚡⭐"), 6UL, "so does a sign that people put into a note");
  expect_same(count_columns("e\xCC\x81"), 1UL, "a combining mark takes no column");
  expect_same(cut_to_columns("abcdef", 6, true), "abcdef", "a text that fits is not cut");
  expect_same(cut_to_columns("abcdef", 4, true), "abc…", "a text that does not fit ends in an ellipsis");
  expect_same(cut_to_columns("日本語", 4, true), "日…", "a wide character is not cut in half");
  expect_same(cut_to_columns("abcdef", 4, false), "abc~", "a terminal without UTF-8 gets a tilde");
  expect_same(cut_to_columns("abc", 1, true), "…", "one column has room for the ellipsis");
  expect_same(
      cut_to_columns("abcdefgh", 6, true, Keep::both_ends), "abc…gh", "both ends are kept where that is asked for");
  expect_same(
      cut_to_columns("日本語日本語", 6, true, Keep::both_ends), "日…語", "wide characters are whole at both ends");
  expect_same(cut_to_columns("abcde\xCC\x81"
                             "f",
                             4,
                             true,
                             Keep::both_ends),
              "ab…f",
              "no end begins with a mark");
  expect_same(
      cut_to_columns("abc", 1, true, Keep::both_ends), "…", "one column has room for the ellipsis of that, too");
  expect_same(rows("one two three", 7), "one two|three", "rows hold whole words, and no space at their end");
  expect_same(rows("one two three", 6), "one|two|three", "a word that does not fit begins a row");
  expect_same(rows("abcdefgh ij", 3), "abc|def|gh|ij", "a word that is longer than a row is split");
  expect_same(rows("日本語", 4), "日本|語", "a wide character is not split");
  expect_same(rows("日本", 1), "日|本", "a character that is too wide has a row of its own");
  expect_same(rows("rlock hold 'a b' --end", 12, " --"), "rlock hold 'a b'|--end", "a separator is not split");
}

}  // namespace rlock::unit
