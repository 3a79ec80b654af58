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

/// When a question was put: by our clock before it was sent, and by the server's (ms, as text) when it was answered.
struct Asked {
  BootClock::time_point sent;
  std::string answered;
};

/// The answers to an acquire.
struct Granted {
  Fence fence;
  int slot = 0;
  BootClock::time_point sent;                 // before the first byte of the request that was granted
  std::optional<Milliseconds> unconfirmed{};  // handed over: the lease is so short until it is renewed
};
struct Busy {
  Milliseconds sleep;  // before asking again, at most
  std::string ticket;  // our place, where we queue
  Milliseconds held, lease, cooling;
  Owner holder;
  Asked asked;
};
struct Foreign {
  Milliseconds sleep;
  std::string ticket, type, value;
  std::optional<Milliseconds> expires_in;  // none: never
  Asked asked;
};
struct Mismatch {
  Capacity in_force;
};
struct Upgrade {};
struct Lost {};
using Answer = std::variant<Granted, Busy, Foreign, Mismatch, Upgrade, Lost>;

/// Reads what acquire.lua answered to a request that was sent then. Throws for what it never answers.
Answer read_answer(Fields fields, BootClock::time_point sent);

/// Reads a message to a waiter that says that it has the lock. `asked`: its last question; a message that counts from
/// another one is worth nothing, and tells only that it is time to ask. What the server's clock says has passed since
/// is taken with the doubt that a lease has (see LeaseTerms::usable), and never as more than has passed here.
std::optional<Granted> read_hand_over(std::string_view message, const Asked& asked);

}  // namespace rlock::lock
