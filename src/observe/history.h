#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/duration.h"
#include "base/timestamp.h"
#include "lock/answer.h"
#include "lock/name.h"
#include "lock/owner.h"
#include "lock/script_call.h"
#include "lock/token.h"
#include "observe/ending.h"

namespace rlock::observe {

/// One acquisition that has ended. Times are the server's.
struct Run {
  std::string lock;  // without the prefix
  lock::Fence fence{};
  WallTime acquired_at{};
  WallTime ended_at{};
  Milliseconds waited{0};
  lock::Capacity capacity{};
  Ending ending{};
  lock::Owner owner{};  // command and note cut

  Milliseconds held() const { return std::max(Milliseconds{0}, ended_at - acquired_at); }
};

/// How many ended runs Redis keeps of one lock.
constexpr std::size_t kept_runs = 100;

/// What Redis remembers of one lock, oldest first.
struct History {
  std::string lock;
  WallTime now;  // by the server's clock
  std::vector<Run> runs;
};

/// What log.lua answered, or whoever answers in its place. A line that cannot be read is left out.
History read_history(const lock::LockName& name, lock::Fields fields);

/// The same lock's histories on several servers as one, the newest `count` runs: a run is known by its fence, and one
/// that died as far as this server knows may have been released at that one.
History merge_histories(const std::vector<History>& histories, std::size_t count);

lock::Request history_request(const lock::LockName& name, std::size_t count);

}  // namespace rlock::observe
