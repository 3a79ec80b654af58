#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/duration.h"
#include "lock/owner.h"
#include "lock/script_call.h"
#include "lock/token.h"

namespace rlock::lock {

/// How many may hold at once: 0 any number of readers, 1 one alone, N that many.
struct Capacity {
  int value = 1;
  friend bool operator==(Capacity, Capacity) = default;
};

constexpr Capacity shared{0};
constexpr Capacity exclusive{1};

/// The answers to an acquire.
struct Granted {
  Fence fence;
  int slot = 0;
  BootClock::time_point sent;  // before the first byte of the request that was granted
};
struct Busy {
  Milliseconds sleep;  // before asking again, at most
  std::string ticket;  // our place, where we queue
  Milliseconds held, lease, cooling;
  std::optional<Owner> holder;  // none: others come first
};
struct Foreign {
  Milliseconds sleep;
  std::string ticket, type, value;
  std::optional<Milliseconds> expires_in;  // none: never
};
struct Mismatch {
  Capacity in_force;
};
struct Upgrade {};
struct Lost {};
using Answer = std::variant<Granted, Busy, Foreign, Mismatch, Upgrade, Lost>;

/// Reads what acquire.lua answered to a request that was sent then. Throws for what it never answers.
Answer read_answer(Fields fields, BootClock::time_point sent);

}  // namespace rlock::lock
