#include "base/json.h"

#include <vector>

#include "base/columns.h"
#include "base/word.h"
#include "expect.h"

namespace rlock::unit {

void test_json() {
  expect_same(JsonObject{}.text(), "{}", "an object may be empty");
  const std::vector<int> numbers{1, 2};
  const auto as_object = [](int n) { return JsonObject{}.add("n", n).json(); };
  expect_same(JsonObject{}
                  .add("text", "a \"b\"")
                  .add("number", -7)
                  .add("flag", true)
                  .add("some", std::optional{3})
                  .add("none", std::optional<int>{})
                  .add("list", json_array(numbers, as_object))
                  .text(),
              R"({"text":"a \"b\"","number":-7,"flag":true,"some":3,"none":null,"list":[{"n":1},{"n":2}]})",
              "every kind of member is written as JSON");
}

void test_words() {
  std::string_view rest = "one  three";
  expect_same(take_word(rest), "one", "a word ends at the separator");
  expect_same(take_word(rest), "", "there is an empty word between two separators");
  expect_same(take_word(rest), "three", "the last word ends with the text");
  expect(rest.empty() && take_word(rest).empty(), "there is nothing after the last word");
}

void test_numbers() {
  expect(parse_number<int>("42", 1, 42) == 42, "a number in its range is read");
  for (const char* text : {"", "43", "0", "1x", " 1", "+1", "-1", "1.0", "99999999999999999999"})
    expect(!parse_number<int>(text, 1, 42), "a text that is not a number in the range is refused", text);
}

void test_code_points() {
  const CodePoint euro = decode_utf8("\xE2\x82\xAC!");
  expect(euro.valid && euro.value == 0x20AC && euro.length == 3, "three bytes are read as one character");
  for (const char* text : {"\x80", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\xFF"})
    expect(!decode_utf8(text).valid && decode_utf8(text).length == 1, "bad UTF-8 is read one byte at a time", text);
}

}  // namespace rlock::unit
