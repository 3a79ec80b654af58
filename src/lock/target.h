#pragma once

#include <string>
#include <vector>

#include "base/duration.h"
#include "lock/answer.h"
#include "lock/owner.h"

namespace rlock::lock {

/// One acquisition that a forced release found.
struct Target {
  enum class State { held, cooling, marked, removed };
  Fence fence;
  State state = State::held;
  Milliseconds lease{0};  // that it had left
  bool kept = false;      // it has a keeper, which renews it and can be told to give it up
  Owner owner;
};

/// Reads "fence state lease_ms kept owner", an answer of force.lua. A number that is missing or malformed reads as 0.
Target read_target(const std::string& line);

/// Adds what one server of a quorum says to what others have said: a target counts as removed once all have removed it.
void add_target(std::vector<Target>& targets, Target target);

}  // namespace rlock::lock
