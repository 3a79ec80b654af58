#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "base/loop.h"
#include "base/timestamp.h"
#include "lock/lock.h"
#include "lock/name.h"
#include "lock/owner.h"
#include "redis/server.h"

namespace rlock::observe {

enum class State { free, held, cooling, foreign };

struct HolderFacts {
  lock::Owner owner;
  WallTime acquired_at;
  Milliseconds held, lease;
  lock::Fence fence;
  int slot = 0;
  int levels = 1;
};

struct WaiterFacts {
  lock::Owner owner;
  lock::Capacity wanted;
  Milliseconds waiting;
};

/// The last that was released; one that died without a word leaves the one before it.
struct LastRun {
  lock::Owner owner;
  WallTime acquired_at;
  WallTime ended_at;
  Milliseconds held;
  std::optional<int> exit_status;  // none: not known
};

/// What one server of a quorum says of a lock.
struct ServerFacts {
  std::string url;
  std::optional<State> state;  // none: it did not answer
};

struct ForeignFacts {
  std::string type;
  std::optional<std::string> value;        // of a string; of a lock of Redisson's: who holds it
  std::optional<Milliseconds> expires_in;  // none: never
};

/// Everything that one lock's server knows of it. Times are the server's.
struct LockFacts {
  std::string name;  // without the prefix
  State state = State::free;
  std::optional<lock::Capacity> capacity;
  Milliseconds cooling{0};
  std::vector<HolderFacts> holders;  // by fence; of a cooling lock those it cools after
  std::vector<WaiterFacts> waiters;  // in their order, the first 500
  std::optional<long long> waiting;  // all of them; none: not known, a quorum has no queue
  std::optional<LastRun> last;
  long long acquired = 0, waited = 0, forced = 0;  // times ever
  std::optional<ForeignFacts> foreign;
  std::vector<ServerFacts> servers;  // of a quorum, in the order of its URLs
};

/// What status.lua answered, or whoever answers in its place: throws Error{unavailable} only for what is no answer at
/// all.
LockFacts read_facts(const lock::LockName& name, lock::Fields fields);

/// Of one lock. Reads only, as all here. Throws as call_script() does.
LockFacts inspect(Loop& loop, redis::Server& server, const lock::LockName& name, Deadline deadline);

/// Of many, at a server that has them all but for those that are just moving: those are looked for in the `whole`
/// cluster, of which the server is one; elsewhere that is the server itself.
std::vector<LockFacts> inspect(Loop& loop,
                               redis::Server& server,
                               const std::vector<lock::LockName>& names,
                               Milliseconds timeout,
                               redis::Server& whole);

/// Every lock and foreign key under the prefix, in order of name, found by SCAN so that the server is never blocked.
std::vector<lock::LockName> list_locks(Loop& loop,
                                       redis::Server& server,
                                       const std::string& prefix,
                                       Milliseconds timeout);

/// What a connection for these must accept.
constexpr redis::ReplyLimits listing_limits{.bytes = 16UL * 1024 * 1024, .elements = 200'000};

}  // namespace rlock::observe
