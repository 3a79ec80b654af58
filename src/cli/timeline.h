#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "observe/ending.h"

namespace rlock::cli {

/// Once that a lock was held.
struct Block {
  WallTime begin, end;
  bool failed = false;  // the mark is where it ended
};

/// What a timeline draws of one lock.
struct Lane {
  std::string name;
  std::vector<Block> blocks;
  WallTime known_since{};  // nothing is known of what was before
};

struct TimelineStyle {
  std::size_t columns = 100;
  bool utf8 = false;
  bool colour = false;
};

/// A lane for each lock from `begin` to `end`, an axis with local hours below, and what the marks mean. Whatever was
/// held in a column's time is seen there, however short; a higher block was held for more of it.
std::string draw_timeline(const std::vector<Lane>& lanes, WallTime begin, WallTime end, const TimelineStyle& style);

}  // namespace rlock::cli
