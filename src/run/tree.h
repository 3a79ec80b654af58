#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "base/clock.h"

namespace rlock::run {

/// Makes this process the one to which orphans among its descendants are given: nobody can leave the tree, not by
/// setsid(2) and not by a double fork. Throws Error{os}.
void adopt_orphans();

/// What became of the children that have ended; each is reaped.
struct Reaped {
  std::optional<int> leader_status;  // wait status of `leader`, if it was among them
  bool any_left = false;             // children that still run
};
Reaped reap(pid_t leader);

/// How long to go on killing what does not die: a process in uninterruptible sleep.
constexpr std::chrono::seconds longest_kill{10};

/// Kills every descendant of this process, again until there is none or `deadline` has passed (a process in
/// uninterruptible sleep does not die). Returns the pids that were left.
std::vector<pid_t> kill_descendants(pid_t leader, std::optional<int>& leader_status, Deadline deadline);

}  // namespace rlock::run
