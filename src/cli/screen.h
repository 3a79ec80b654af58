#pragma once

#include <cstddef>

namespace rlock::cli {

/// What stdout leads to.
struct Screen {
  bool is_terminal = false;
  std::size_t columns = 0;  // 0: no limit
  std::size_t rows = 0;     // 0: no limit
  bool colour = false;      // a terminal, and NO_COLOR is not set

  /// Asked each time anew: a window changes its size.
  static Screen now();
};

}  // namespace rlock::cli
