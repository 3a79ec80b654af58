#pragma once

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "cli/screen.h"

namespace rlock::cli {

/// One period of a lock. What it was on hold for, or is unknown, is drawn where the lock was not held.
struct Bar {
  enum class Kind {
    held,
    on_hold,
    unknown,  // somebody has died at some time in it, or Redis keeps nothing of it any more
  };

  WallTime begin, end;
  bool failed = false;  // drawn as a mark where it ended
  Kind kind = Kind::held;
};

/// One lock in a timeline.
struct Lane {
  std::string name;
  std::vector<Bar> bars;
};

/// Draws a lane for each lock from `begin` to `end`, an axis with local times below, and a legend. Every run is
/// visible, however short; the higher a block, the more of the column's time the lock was held.
std::string draw_timeline(const std::vector<Lane>& lanes, WallTime begin, WallTime end, const Screen& screen);

}  // namespace rlock::cli
