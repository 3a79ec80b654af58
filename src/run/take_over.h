#pragma once

#include <sys/types.h>

#include <optional>

#include "base/clock.h"
#include "run/sweep.h"
#include "run/tree.h"

namespace rlock::run {

/// What the keeper does when the guard is dead, stopped, frozen or hangs: it kills the guard and the whole tree below
/// it. Children of ours that are older than the guard are spared: they belong to a script that became rlock by exec.
class TakeOver {
 public:
  /// The guard must not be reaped yet. Throws Error{os} where /proc does not show it.
  explicit TakeOver(pid_t guard) {
    tree_.spare_elders_of(guard);
    tree_.do_not_count(guard);
  }
  TakeOver(const TakeOver&) = delete;
  TakeOver& operator=(const TakeOver&) = delete;

  /// Does one round. Returns whether no process of the command is left; the guard itself may be, if it hangs.
  bool go_on() { return sweep_.go_on(unknown_); }
  Deadline next() const { return sweep_.next(); }
  std::optional<Survivors> report() { return sweep_.report(); }

 private:
  Tree tree_;
  CommandGroup unknown_{tree_};  // only the guard knew the leader of the command's group
  Sweep sweep_{tree_};
};

}  // namespace rlock::run
