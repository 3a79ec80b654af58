#pragma once

#include <cstddef>
#include <string_view>

namespace rlock::cli {

/// The terminal on stdout, if there is one.
struct Screen {
  bool is_terminal = false;
  std::size_t columns = 0;  // 0 means no limit
  std::size_t rows = 0;     // 0 means no limit
  bool colour = false;      // whether it has colours and NO_COLOR is not set

  /// Not cached, since a window may be resized.
  static Screen now();
};

/// Writes the whole text to stdout. Throws Error{os}.
void print(std::string_view text);

}  // namespace rlock::cli
