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

/// How many may hold the lock at once: 0 any number of readers, 1 a single holder, N that many.
struct Capacity {
  int value = 1;
  friend bool operator==(Capacity, Capacity) = default;
};

constexpr Capacity shared{0};
constexpr Capacity exclusive{1};

/// The two times of a question: by our clock before it was sent, by the server's (ms, as text) when it was answered.
struct Asked {
  BootClock::time_point sent;
  std::string answered;
};

/// Who made a holder give up the lock, and by which means.
struct Eviction {
  enum class Kind { forced, replaced };
  Kind kind = Kind::forced;
  std::string by;  // as describe(Owner) writes it; not to be trusted
};

/// The answers to an acquire.
struct Granted {
  Fence fence;
  int slot = 0;
  BootClock::time_point sent;                  // before the first byte of the request left; the lease counts from here
  std::optional<Milliseconds> unconfirmed{};   // the length of the lease until its first renewal, if that is shorter
  std::optional<Milliseconds> last_success{};  // how long ago the last run was granted that ended with 0; in a quorum
};
struct Busy {
  Milliseconds sleep;  // how long to sleep at most before asking again
  std::string ticket;  // of our place, if we are in the queue
  Milliseconds held, lease, cooling;
  Owner holder;
  Asked asked;
  Capacity in_force;
  long long place = 0;  // in the queue, from 1; 0 if we are not in it
  long long waiting = 0;
  std::optional<Milliseconds> last_success{};  // as in Granted
  bool tied = false;  // in a quorum: takers have split the servers among them, and nobody holds the lock
};
struct Foreign {
  Milliseconds sleep;
  std::string ticket, type, value;
  std::optional<Milliseconds> expires_in;  // nothing: never
  Asked asked;
  long long place = 0;
};
/// The queue has as many waiters as --max-waiting allows.
struct Full {
  long long waiting;
  bool tied = false;  // in a quorum: there is room at other servers
};
/// With --once or --once-per: the work has been done already.
struct Done {
  Milliseconds granted_ago, ended_ago;
  Owner by;
  std::string id;  // empty if it had none
};
/// With --latest or --replace: a newer waiter has taken our place.
struct Superseded {
  Owner by;
  bool tied = false;  // in a quorum: no majority of the servers names the same waiter
};
/// The level was cancelled or released before; nothing was taken.
struct Cancelled {};
/// Re-entry: the token holds the lock in a mode that does not allow what was asked for.
struct Upgrade {
  Capacity in_force;
};
/// Re-entry: the token holds the lock for another --once ID.
struct OtherOnce {
  std::string id;
};
/// The token must give up the lock.
struct Evicted {
  Eviction eviction;
};
/// The token does not hold the lock.
struct Lost {};
using Answer =
    std::variant<Granted, Busy, Foreign, Full, Done, Superseded, Cancelled, Upgrade, OtherOnce, Evicted, Lost>;

/// Reads "kind by" of an answer "evicted" of acquire or renew.
Eviction read_eviction(Fields& fields);

/// Reads the answer of acquire.lua to a request for a lease of `ttl` that was sent at `sent`. Throws Error{unavailable}
/// for anything else.
Answer read_answer(Fields fields, BootClock::time_point sent, Milliseconds ttl);

/// Reads the message that hands the lock to a waiter. Its times count from the waiter's last question, `asked`. Returns
/// nothing for a message that counts from another question, or does not prove that its sender knows the token; such a
/// message means only that it is time to ask.
std::optional<Granted> read_hand_over(std::string_view message, const Asked& asked, const Token& token);

/// How long another message says to sleep; zero, which means to ask at once, for one that is not understood.
Milliseconds read_sleep(std::string_view message);

}  // namespace rlock::lock
