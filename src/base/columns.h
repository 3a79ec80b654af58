#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rlock {

/// The first and the last character of a range.
using CodeRange = std::pair<char32_t, char32_t>;
bool is_in(std::span<const CodeRange> ranges, char32_t c);

/// One character, and how many bytes it takes.
struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;
  bool valid = false;  // otherwise `value` is a single byte that is not UTF-8
};

/// Decodes the first character of a text that is not empty, by RFC 3629: no overlong forms, no surrogates, nothing
/// above U+10FFFF.
CodePoint decode_utf8(std::string_view text);

/// How many terminal columns the text takes: two for an East Asian wide character, none for a combining mark. This and
/// the functions below expect text that has been through printable().
std::size_t count_columns(std::string_view text);

/// What stays of a text that is cut. The end tells many names apart, such as those of machines.
enum class Keep { beginning, both_ends };

/// The text, or what is kept of it with "…" for the rest, in at most `columns`, of which there must be at least one.
/// Where the terminal does not have UTF-8, "~" stands for "…".
std::string cut_to_columns(std::string_view text, std::size_t columns, bool utf8, Keep keep = Keep::beginning);

/// Takes from the text what goes into one row of `columns`, of which there must be at least one: whole words, without
/// the space behind the last; a word that is longer than a row is split. With another separator the text is split in
/// front of one only, even if a row becomes too long.
std::string_view take_row(std::string_view& text, std::size_t columns, std::string_view separator = " ");

}  // namespace rlock
