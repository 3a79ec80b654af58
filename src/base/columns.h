#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlock {

/// How many terminal columns the text takes: two for an East Asian wide character, none for a combining mark. Both
/// functions expect text that has been through printable().
std::size_t count_columns(std::string_view text);

/// The text, or its beginning followed by "…", in at most `columns`, of which there must be at least one.
std::string cut_to_columns(std::string_view text, std::size_t columns);

}  // namespace rlock
