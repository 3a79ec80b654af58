#pragma once

#include <cstddef>

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

}  // namespace rlock::cli
