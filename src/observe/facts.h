#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/timestamp.h"
#include "lock/answer.h"
#include "lock/name.h"
#include "lock/owner.h"
#include "lock/script_call.h"
#include "lock/token.h"
#include "observe/ending.h"
#include "observe/history.h"
#include "redis/server.h"

namespace rlock::observe {

enum class State { free, held, cooling, foreign };

/// "free", "held", "cooling" or "foreign".
std::string_view state_name(State state);

/// One holder of a lock, or a former one whose minimum hold is not over.
struct HolderFacts {
  lock::Owner owner;
  bool has_keeper = false;  // a process renews the lease: the owner or, if that does not or has ended, a run inside it
  bool dead = false;        // the process that renewed it ran on this machine, and is gone: the lease will run out
  WallTime acquired_at;
  Milliseconds held, lease;
  Milliseconds cooling{0};                   // how long its seat stays taken after its run; 0 while it holds
  std::optional<lock::Failures> failures{};  // after which it cools (--backoff)
  Milliseconds waited{0};
  lock::Fence fence;
  int slot = 0;
  int levels = 1;                 // runs that share the token, one inside another
  std::optional<Ending> evicted;  // set when the holder was told to give the lock up, with who told it

  bool cools() const { return cooling.count() > 0; }
  bool holds() const { return !cools(); }
  /// Whether its process has ended, or never renewed it, while a run inside it goes on.
  bool has_left() const { return has_keeper && !owner.stays; }
  /// Of its process, while that lives and renews the lease.
  std::optional<int> pid() const {
    return has_keeper && holds() && !has_left() && owner.pid > 0 ? std::optional{owner.pid} : std::nullopt;
  }
};

/// One waiter in a lock's queue.
struct WaiterFacts {
  lock::Owner owner;
  lock::Capacity wanted;
  Milliseconds waiting;
  bool first = false;  // asked to go to the head of the queue
};

/// A hold, and when it began.
struct HoldFacts {
  WallTime since{};
  lock::Hold hold{};
};

/// What one server of a quorum says about a lock.
struct ServerFacts {
  std::string url;
  std::optional<State> state{};  // empty when it did not answer
};

/// A key that another program made where a lock would be.
struct ForeignFacts {
  std::string type;                          // the type of the key on Redis
  std::optional<std::string> value;          // of a string, its value; of a Redisson lock, its holder
  std::optional<Milliseconds> expires_in{};  // empty when it never expires
};

/// The key's type and length, "string of 36 bytes". Its value is often somebody's token, so it is not shown to people.
std::string describe(const ForeignFacts& key);

/// "3h ago", in the largest unit only.
std::string format_ago(WallTime then, WallTime now);

/// "ok 3h ago", "exit 3 2d ago"; "died, noticed 5m ago", where only that is known.
std::string describe_end(const Run& run, WallTime now);

/// Why a taker left without the lock, as the scripts call it, and in words.
struct SkipReason {
  std::string_view name, words;
};

/// In the order of Counters::skipped.
constexpr auto skip_reasons = std::to_array<SkipReason>({{"held", "not free"},
                                                         {"timed_out", "wait over"},
                                                         {"done", "already done"},
                                                         {"superseded", "superseded"},
                                                         {"full", "too many waiting"},
                                                         {"attempts", "out of attempts"}});

/// The last taker that left without the lock.
struct Skip {
  WallTime at{};
  std::string reason{}, holder{}, host{};
};

/// How often each of these has happened since the lock was first used.
struct Counters {
  long long acquired = 0;  // whether after a wait or at once
  long long waited = 0, evicted = 0, lost = 0, failed = 0;
  long long failing = 0;  // failures since the last success, of runs with --once, --once-per or --backoff
  std::array<long long, skip_reasons.size()> skipped{};
  std::optional<Skip> last_skip{};
};

/// Everything that a server knows about one lock. Times are by the server's clock.
struct LockFacts {
  std::string name;  // without the prefix
  WallTime now{};    // when the server answered
  State state = State::free;
  std::optional<lock::Capacity> capacity{};
  Milliseconds cooling{0};             // of the holder that cools longest
  std::vector<HolderFacts> holders{};  // ordered by fence
  std::vector<WaiterFacts> waiters{};  // the first 500, in the order of the queue
  long long waiting = 0;               // the length of the whole queue
  std::optional<Run> last{};
  std::optional<Run> success{};     // the newest run that ended with 0
  std::optional<HoldFacts> hold{};  // nobody is granted the lock until it ends
  Counters counters{};
  std::optional<ForeignFacts> foreign{};
  std::vector<ServerFacts> servers{};  // of a quorum, in the order of its URLs
};

/// Whether nobody is known to have used the lock, so that its name may be a mistake.
bool is_unheard_of(const LockFacts& lock);

/// Reads the answer of status.lua, which is untrusted. Values that make no sense are read as zero or left out; throws
/// Error{unavailable} only for an answer of another kind.
LockFacts read_facts(const lock::LockName& name, lock::Fields fields);

/// The facts of a lock on which status.lua failed with those words: the key holds something that is not a lock, so
/// nobody can take it.
LockFacts unreadable(const lock::LockName& name, std::string_view words);

/// Asks a server about one lock. Throws as call_script() does.
LockFacts inspect(redis::Server& server, const lock::LockName& name, Deadline deadline);

}  // namespace rlock::observe
