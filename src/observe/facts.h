#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "base/timestamp.h"
#include "lock/answer.h"
#include "lock/name.h"
#include "lock/owner.h"
#include "lock/script_call.h"
#include "observe/ending.h"

namespace rlock::observe {

enum class State { free, held, cooling, foreign };

struct HolderFacts {
  lock::Owner owner;
  bool kept = false;  // a process renews it, so that there is somebody to kill; an `acquire` has exited
  WallTime acquired_at;
  Milliseconds held, lease, waited;
  lock::Fence fence;
  int slot = 0;
  int levels = 1;
  std::optional<Ending> evicted;  // told to give it up: by whom
};

struct WaiterFacts {
  lock::Owner owner;
  lock::Capacity wanted;
  Milliseconds waiting;
};

/// How the run before ended.
struct LastRun {
  lock::Owner owner;
  WallTime acquired_at;
  WallTime ended_at;
  Milliseconds held;
  Ending ending;
};

/// The newest run that ended with 0.
struct Success {
  lock::Owner owner;
  WallTime acquired_at;
  WallTime ended_at;
};

/// What one server of a quorum says of a lock.
struct ServerFacts {
  std::string url;
  std::optional<State> state;  // none: it did not answer
};

struct ForeignFacts {
  std::string type;                        // of the key on Redis
  std::optional<std::string> value;        // of a string; of a lock of Redisson's: who holds it
  std::optional<Milliseconds> expires_in;  // none: never
};

/// How often ever.
struct Counters {
  long long acquired = 0, waited = 0, forced = 0, lost = 0;
};

/// Everything that one lock's server knows of it. Times are the server's.
struct LockFacts {
  std::string name;  // without the prefix
  WallTime now{};    // by the server's clock
  State state = State::free;
  std::optional<lock::Capacity> capacity{};
  Milliseconds cooling{0};
  std::vector<HolderFacts> holders{};  // by fence; of a cooling lock those it cools after
  std::vector<WaiterFacts> waiters{};  // in their order, the first 500
  long long waiting = 0;               // all of them
  std::optional<LastRun> last{};
  std::optional<Success> success{};
  Counters counters{};
  std::optional<ForeignFacts> foreign{};
  std::vector<ServerFacts> servers{};  // of a quorum, in the order of its URLs
};

/// What status.lua answered, or whoever answers in its place: throws Error{unavailable} only for what is no answer at
/// all.
LockFacts read_facts(const lock::LockName& name, lock::Fields fields);

/// Of a lock on which status.lua failed with those words: what is stored there is not what a lock has, so that nobody
/// can take it.
LockFacts unreadable(const lock::LockName& name, std::string_view words);

}  // namespace rlock::observe
