#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlock {

/// How many columns of a terminal the text takes: East Asian wide characters two, combining marks none. Both functions
/// are for text that printable() has made.
std::size_t count_columns(std::string_view text);

/// The text, or its beginning and "…", in at most so many columns; there must be one.
std::string cut_to_columns(std::string_view text, std::size_t columns);

}  // namespace rlock
