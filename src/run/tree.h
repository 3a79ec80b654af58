#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "run/process_table.h"

namespace rlock::run {

/// Makes orphans among this process's descendants its own children, so that none can leave the tree, neither by
/// setsid(2) nor by a double fork. Throws Error{os}.
void adopt_orphans();

/// What reap() found.
struct Reaped {
  std::optional<int> leader_status;  // wait status of `leader`, if it was among them
  bool any_left = false;             // some children still run
};
/// Reaps all children that have ended.
Reaped reap(pid_t leader);

/// Processes that KILL has not ended: they hang in the kernel, or run as another user.
struct Survivors {
  int count = 0;
  std::array<pid_t, 3> some{};  // a few of their PIDs; zero where there are fewer, or /proc does not show them
};

/// All descendants of this process. A signal never reaches a process that merely reuses a PID: our children keep theirs
/// until we reap them, and every other descendant is held by a pidfd that is opened before we check that the process is
/// still listed as a child of its parent.
class Tree {
 public:
  /// Throws Error{os} where /proc exists and cannot be opened. Where there is none, nothing is visible.
  Tree() = default;

  /// Whether every descendant can be seen.
  bool is_visible() const { return processes_.is_ours(); }

  /// Excludes children that are older than `child`, and their descendants. `child` must not be reaped yet. Throws
  /// Error{os} if `child` cannot be found, since nobody then knows whom to spare.
  void spare_elders_of(pid_t child);

  /// The child is killed like the others, but does not count as a survivor.
  void do_not_count(pid_t child) { uncounted_ = child; }

  /// Looks at all descendants, which brings the pages that a later call needs into memory. Returns how long that took.
  /// Ends at `until` at the latest: a look may not keep pace with a tree that goes on growing.
  BootClock::duration rehearse(Deadline until);

  /// Sends a signal to every descendant, or only to those in a process group.
  void signal(int number, std::optional<pid_t> group = std::nullopt);

  /// One round of killing: stops all processes, so that none can fork while the others are looked for, then kills them.
  /// A process that was forked meanwhile, or that no descriptor was left for, becomes our child when its parents die,
  /// and is found in the next round.
  void kill() noexcept;

  /// Kills our children only, without allocating memory. The whole tree takes as many rounds as it has generations,
  /// since grandchildren become our children when their parents are dead.
  void kill_children() const noexcept;

  /// The processes that are left after such rounds, to be called while reap() still finds some.
  Survivors survivors();

 private:
  struct Member {
    pid_t pid;
    Fd handle;  // a pidfd; empty for a child of ours
  };

  void look(Deadline until = never);
  void forget();
  bool find(int number, Deadline until = never);
  void find_children();
  void find_children_of(pid_t parent, int number);
  void signal(const Member& member, int number) const;

  ProcessTable processes_;
  std::vector<pid_t> spared_;
  pid_t uncounted_ = -1;
  std::vector<Member> members_;
  std::unordered_set<pid_t> known_;  // the PIDs of members and of those that are spared
};

}  // namespace rlock::run
