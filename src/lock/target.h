#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/duration.h"
#include "lock/answer.h"
#include "lock/owner.h"
#include "lock/script_call.h"

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

/// A key that another program made where the lock would be.
struct ForeignKey {
  std::string type, value;
};
/// What a forced release found; no targets if the lock is free.
using Forced = std::variant<std::vector<Target>, ForeignKey>;

/// Sums up the servers' answers to force.lua: every acquisition that any of them knows of, each once. It counts as
/// removed once all have removed it. Another program's key matters only if no server knows of an acquisition.
Forced sum_up_targets(std::span<CallResult> answers);

}  // namespace rlock::lock
