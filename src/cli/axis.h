#pragma once

#include <cstddef>
#include <string>

#include "base/timestamp.h"

namespace rlock::cli {

/// A line with a tick at every so many hours, and under it what the clock says here at each.
struct Axis {
  std::string line, labels;
};

Axis draw_axis(WallTime begin, WallTime end, std::size_t columns, bool utf8);

}  // namespace rlock::cli
