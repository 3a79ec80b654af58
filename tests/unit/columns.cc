#include "base/columns.h"

#include "expect.h"

namespace rlock::unit {

void test_columns() {
  expect_same(count_columns("abc"), 3UL, "a letter takes a column");
  expect_same(count_columns("日本"), 4UL, "a wide character takes two columns");
  expect_same(count_columns("e\xCC\x81"), 1UL, "a combining mark takes no column");
  expect_same(cut_to_columns("abcdef", 6, true), "abcdef", "a text that fits is not cut");
  expect_same(cut_to_columns("abcdef", 4, true), "abc…", "a text that does not fit ends in an ellipsis");
  expect_same(cut_to_columns("日本語", 4, true), "日…", "a wide character is not cut in half");
  expect_same(cut_to_columns("abcdef", 4, false), "abc~", "a terminal without UTF-8 gets a tilde");
  expect_same(cut_to_columns("abc", 1, true), "…", "one column has room for the ellipsis");
}

}  // namespace rlock::unit
