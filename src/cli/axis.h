#pragma once

#include <cstddef>
#include <string>

#include "base/timestamp.h"

namespace rlock::cli {

/// The time axis of a timeline: a line with ticks at round times, and the local time under each tick where there is
/// room.
struct Axis {
  std::string line, labels;
};

Axis draw_axis(WallTime begin, WallTime end, std::size_t columns, bool utf8);

}  // namespace rlock::cli
