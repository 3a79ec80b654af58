#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/timestamp.h"
#include "base/word.h"
#include "lock/owner.h"
#include "lock/script_call.h"
#include "lock/token.h"

namespace rlock::lock {

// What the scripts answer. Hides how they write it, and how much of it is believed.

/// Reads an untrusted answer word by word from left to right. A missing word reads as empty or zero, and no number is
/// so large that a sum of a thousand could overflow.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : rest_(text) {}

  std::string_view word();
  /// Empty unless the next word is a whole number from 0 to `most`.
  std::optional<long long> number(long long most = largest_whole);
  long long number_or_zero() { return number().value_or(0); }
  /// Of seats, slots or levels, which are fewer than a million.
  int count();
  Milliseconds duration() { return Milliseconds{number_or_zero()}; }
  WallTime time();
  /// Reads the six words of an owner.
  Owner owner();
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// The value of `name=value` among the words; empty where there is no such word.
std::optional<std::string> find_extra(std::string_view words, std::string_view name);

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

/// Nobody is granted the lock until that time, by the server's clock.
struct Hold {
  WallTime until{};
  Owner by{};
};

/// For a hold that leaves another one alone if that lasts longer.
struct AtLeast {
  Milliseconds time;
};

/// When a hold is to end: at a time, or so long after the server hears of it.
using HoldEnd = std::variant<Milliseconds, WallTime, AtLeast>;

/// A hold that was made, and the one that it replaces.
struct NewHold {
  Hold hold;
  std::optional<Hold> replaced{};
};

/// A fence is a time of the server in us, or follows one. None is believed that is later than the year 2109: whoever
/// used it would leave no room for the next ones, on servers that do not lie either.
std::optional<Fence> read_fence(std::string_view word);

/// The answers to an acquire.
struct Granted {
  Fence fence;
  int slot = 0;
  BootClock::time_point sent;                  // the lease counts from here; the request left later
  std::optional<Milliseconds> unconfirmed{};   // the length of the lease until its first renewal, if that is shorter
  std::optional<Milliseconds> last_success{};  // how long ago the last run was granted that ended with 0; in a quorum
};
/// Failures in a row, and how the last of them ended, in the words of the history.
struct Failures {
  long long count = 0;
  std::string end;
};
/// Reads the form in which Redis keeps them: "2,died".
std::optional<Failures> parse_failures(std::string_view text);
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
  std::optional<Failures> failures{};  // what it cools after (--backoff)
};
/// Nobody is granted the lock until the hold ends.
struct OnHold {
  Milliseconds sleep;
  std::string ticket;
  Hold hold;
  WallTime now;  // by the server's clock
  Asked asked;
  long long place = 0;
  std::optional<Milliseconds> last_success{};  // as in Granted
  bool tied = false;                           // as in Busy: it takes more than one server to hold a lock back
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
/// With --attempts: so many attempts have failed that no more may be made.
struct Exhausted {
  Failures failures;
  Milliseconds granted_ago, ended_ago;  // of the last
  std::string host;
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
using Answer = std::variant<Granted,
                            Busy,
                            OnHold,
                            Foreign,
                            Full,
                            Done,
                            Exhausted,
                            Superseded,
                            Cancelled,
                            Upgrade,
                            OtherOnce,
                            Evicted,
                            Lost>;

template <typename... Kinds>
bool is_one_of(const Answer& answer) {
  return (std::holds_alternative<Kinds>(answer) || ...);
}

/// The answer to a renewal that a majority has carried out.
struct Extended {};
using Renewal = std::variant<Extended, Evicted, Lost>;

/// The answer to a release.
struct Release {
  enum class Kind {
    released,
    cooling,  // released, but nobody is granted the lock for a while
    kept,     // other levels of the token still hold it
    lost,
  };
  Kind kind = Kind::released;
  Milliseconds cooling{0};
  long long failed_attempts = 0;  // of those that --attempts counts, if the run that has ended was one of them
};

/// One acquisition that a forced release found.
struct Target {
  enum class State { held, cooling, marked, removed };
  Fence fence;
  State state = State::held;
  Milliseconds lease{0};    // that it had left
  bool has_keeper = false;  // which renews it and can be told to give it up
  bool dead = false;        // as far as the caller can tell, that keeper is gone, so that the lease will run out
  Owner owner;
};

/// A key that another program made where the lock would be.
struct ForeignKey {
  std::string type, value;
};
/// What a forced release found: targets, ordered by fence, and none if the lock is free.
using Forced = std::variant<std::vector<Target>, ForeignKey>;

/// Reads "kind by" of an answer "evicted" of acquire or renew.
Eviction read_eviction(Fields& fields);

/// Reads the answer of acquire.lua to a request for a lease of `ttl` that was sent at `sent`. Throws Error{unavailable}
/// for anything else.
Answer read_answer(Fields fields, BootClock::time_point sent, Milliseconds ttl);

/// Reads an answer of release.lua by which the level is released. What it says of attempts is only for people.
Release read_release(Fields fields);

/// Reads "until_ms owner", as hold.lua and acquire.lua name a hold.
Hold read_hold(Fields& fields);

/// Reads the answer of hold.lua to a request of `by`: "held until_ms now_ms [until_ms owner]", which does not say whose
/// hold it is, or "kept until_ms owner".
NewHold read_new_hold(Fields fields, const Owner& by);

/// Reads "fence state lease_ms kept owner", an answer of force.lua. A number that is missing or malformed reads as 0.
Target read_target(const std::string& line);

/// Reads the message that hands the lock to a waiter. Its times count from the waiter's last question, `asked`. Returns
/// nothing for a message that counts from another question, or does not prove that its sender knows the token; such a
/// message means only that it is time to ask.
std::optional<Granted> read_hand_over(std::string_view message, const Asked& asked, const Token& token);

/// How long another message says to sleep. Zero means to ask at once, also for a message that is not understood.
Milliseconds read_sleep(std::string_view message);

}  // namespace rlock::lock
