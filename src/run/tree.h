#pragma once

#include <sys/types.h>

#include <array>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "run/process_table.h"

namespace rlock::run {

/// Makes orphans among this process's descendants its own children, so that none can leave the tree, neither by
/// setsid(2) nor by a double fork. Throws Error{os}.
void adopt_orphans();

/// Processes that KILL has not ended: they hang in the kernel, or run as another user.
struct Survivors {
  int count = 0;
  std::array<pid_t, 3> some{};  // a few of their PIDs; zero where there are fewer, or /proc does not show them
};

/// The command and its descendants, all of which are descendants of this process: of the guard, or of a keeper whose
/// guard has died. A signal reaches no process that merely reuses a PID: our children keep theirs until we reap them,
/// and every other descendant is held by a pidfd that is opened before we check that the process is still listed as a
/// child of its parent. Only a parent whose own PID was used again in that moment could deceive us.
class Tree {
 public:
  /// Throws Error{os} where /proc exists and cannot be opened. Where there is none, nothing is visible.
  Tree() = default;

  /// Whether every descendant can be seen.
  bool is_visible() const { return processes_.is_ours(); }

  /// The command itself has been started. It is the last of the tree to be reaped.
  void begins_with(pid_t leader) { leader_ = leader; }
  /// The leader has been reaped, so no other process of the tree is left.
  void is_exhausted() { exhausted_ = true; }

  /// To be called in the keeper, right after it has forked the guard, which must not be reaped. The keeper may have
  /// other children too, which are not in the tree: its look-ups, which stay in its process group, and strangers: the
  /// children of a script that became rlock by exec, orphans of theirs, and as process 1 of a container everybody's.
  /// The orphans of a dead process become our children together and in order, so what is listed before the leader is
  /// not the command's. There is one exception: what loses its parent while the guard dies comes to us before all that
  /// the guard leaves. Where there are strangers it is taken for one of them.
  void is_left_by(pid_t guard) noexcept;

  /// Looks at all descendants, which brings the pages that a later call needs into memory. Returns how long that took.
  /// Ends at `until` at the latest: a look may not keep pace with a tree that goes on growing.
  BootClock::duration rehearse(Deadline until);

  /// Sends a signal to every descendant that is not in the process group.
  void signal_outside(pid_t group, int number);

  /// One round of killing: stops all processes, so that none can fork while the others are looked for, then kills them.
  /// A process that was forked meanwhile, or that no descriptor was left for, becomes our child when its parents die,
  /// and is found in the next round. Without memory or descriptors it kills our children only, and returns false.
  bool kill() noexcept;

  /// Whether kill() has still found new processes in its last look, so that others may have escaped it.
  bool is_growing() const { return is_growing_; }

  /// Kills our children only, without allocating memory. The whole tree takes as many rounds as it has generations,
  /// since grandchildren become our children when their parents are dead.
  void kill_children() const noexcept;

  /// Reaps our children that have ended, but for the leader and the guard. Returns whether any has not ended. Allocates
  /// no memory.
  bool reap() const noexcept;

  /// In the guard, where SIGCHLD is blocked: reaps children that have ended, up to the leader, without looking in /proc
  /// at those that live on. Of very many it leaves some to the next call, for which it sends us a SIGCHLD.
  void reap_ended() const noexcept;

  /// Reaps those of our children that have ended and are not in the tree.
  void reap_others() const;

  /// Whether the leader's process group has a member that is not dead, wherever it is. True where that cannot be found
  /// out.
  bool has_group_members() const noexcept;

  /// The processes that are left after rounds of killing, to be called while some are: descendants, and members of the
  /// leader's group that are not.
  Survivors survivors() noexcept;

 private:
  struct Member {
    pid_t pid;
    Fd handle;  // a pidfd; empty for a child of ours
  };

  class Kin;
  Kin kin() const noexcept;
  bool has_living_guard() const noexcept;

  void look(Deadline until = never);
  void forget();
  bool find(int number, Deadline until = never);
  void find_children();
  void find_children_of(pid_t parent, int number);
  void signal(const Member& member, int number) const;

  ProcessTable processes_;
  pid_t leader_ = 0;
  bool exhausted_ = false;
  bool is_growing_ = false;
  pid_t guard_ = 0;  // 0 in the guard itself, whose children are all in the tree
  bool has_strangers_ = false;
  std::vector<Member> members_;
  std::unordered_set<pid_t> known_;  // the PIDs of members
};

}  // namespace rlock::run
