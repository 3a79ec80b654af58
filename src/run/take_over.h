#pragma once

#include <sys/types.h>

#include <optional>

#include "base/clock.h"
#include "run/sweep.h"
#include "run/tree.h"

namespace rlock::run {

/// What the keeper does when the guard is dead, or has not done its work because it is stopped, frozen or hangs: it
/// kills the guard and the whole tree below it itself. Children of ours that are older than the guard are none of the
/// command's: a script had them before it became us.
class TakeOver {
 public:
  /// The guard must not be reaped yet. Throws Error{os} where /proc cannot be opened.
  explicit TakeOver(pid_t guard);

  /// One round. True when nobody of the command is left; the guard itself may be, if it hangs.
  bool go_on();
  Deadline next() const { return sweep_.next(); }
  std::optional<Survivors> report() { return sweep_.report(); }

 private:
  Tree tree_;
  CommandGroup unknown_{tree_};  // who led the command was the guard's knowledge
  Sweep sweep_{tree_};
};

}  // namespace rlock::run
