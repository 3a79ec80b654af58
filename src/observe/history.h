#pragma once

#include <algorithm>
#include <optional>
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

/// One acquisition that has ended, or the moment at which a hold began or ended: then acquired_at and ended_at are the
/// same. Times are the server's.
struct Run {
  std::string lock{};   // without the prefix
  lock::Fence fence{};  // of a hold a negative number that identifies its beginning or end; of the last success 0
  WallTime acquired_at{};
  WallTime ended_at{};
  Milliseconds waited{0};
  lock::Capacity capacity{};
  Ending ending{};
  lock::Owner owner{};                   // its command and note may be cut short
  std::optional<WallTime> hold_until{};  // of a hold: until when it was to last
  std::string once{};                    // of the last success, the ID that it had

  /// A death is dated to when somebody noticed it, and that of a plain acquire to the end of its first lease.
  bool is_end_known() const { return ending.kind != Ending::Kind::died; }
  /// The server's clock may have been set back meanwhile.
  Milliseconds held() const { return std::max(Milliseconds{0}, ended_at - acquired_at); }
};

/// How many past runs of a lock Redis keeps.
constexpr std::size_t kept_runs = 100;

/// The past runs of one lock, the oldest first.
struct History {
  std::string lock;
  WallTime now;  // by the server's clock
  std::vector<Run> runs{};
};

/// Reads the answer of log.lua, which is untrusted. A line that cannot be read is left out.
History read_history(const lock::LockName& name, lock::Fields fields);

/// Merges one lock's histories on several servers into the newest `count` runs. The fence identifies a run. If it died
/// according to one server, another may know how it really ended.
History merge_histories(const std::vector<History>& histories, std::size_t count);

}  // namespace rlock::observe
