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

/// Who made a holder give up the lock, and by which means.
struct Eviction {
  std::string kind;  // "forced" or "replaced"
  std::string by;    // as written by describe(Owner), not to be trusted
};

/// The answers to an acquire.
struct Granted {
  Fence fence;
  int slot = 0;
  BootClock::time_point sent;                 // before the first byte of the request that was granted
  std::optional<Milliseconds> unconfirmed{};  // the lease is so short until it is renewed
};
struct Busy {
  Milliseconds sleep;  // before asking again, at most
  std::string ticket;  // our place, where we queue
  Milliseconds held, lease, cooling;
  Owner holder;
  Asked asked;
  Capacity in_force;
  long long place = 0;  // 1 the first in the queue, 0 not in it
  long long waiting = 0;
};
struct Foreign {
  Milliseconds sleep;
  std::string ticket, type, value;
  std::optional<Milliseconds> expires_in;  // none: never
  Asked asked;
  long long place = 0;
};
/// As many wait as may.
struct Full {
  long long waiting;
};
/// The last success will do for who asks for it once.
struct Done {
  Milliseconds granted_ago, ended_ago;
  Owner by;
  std::string id;  // empty where it had none
};
/// A newer one has our place.
struct Superseded {
  Owner by;
};
/// The level was given up, or has ended; nothing was taken.
struct Cancelled {};
/// Re-entry: what the token holds is less than what is asked for.
struct Upgrade {
  Capacity in_force;
};
/// Re-entry: the token holds for another ID.
struct OtherOnce {
  std::string id;
};
/// Re-entry: the token must give the lock up.
struct Evicted {
  Eviction eviction;
};
/// Re-entry: the token does not hold.
struct Lost {};
using Answer =
    std::variant<Granted, Busy, Foreign, Full, Done, Superseded, Cancelled, Upgrade, OtherOnce, Evicted, Lost>;

/// The IDs and descriptions that scripts keep are percent-encoded; whatever cannot be decoded stays as it is.
std::string decode_word(std::string_view word);

/// Reads "kind by", as acquire and renew answer "evicted".
Eviction read_eviction(Fields& fields);

/// Reads what acquire.lua answered to a request for a lease of `ttl` that was sent then. Throws for what it never
/// answers.
Answer read_answer(Fields fields, BootClock::time_point sent, Milliseconds ttl);

/// Reads a message to a waiter that says that it has the lock. `asked`: its last question; a message that counts from
/// another one, or does not prove that its sender knows the token, is worth nothing, and tells only that it is time to
/// ask. What the server's clock says has passed since is taken with the doubt that a lease has (LeaseTerms::usable).
std::optional<Granted> read_hand_over(std::string_view message, const Asked& asked, const Token& token);

}  // namespace rlock::lock
