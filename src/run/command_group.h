#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/fd.h"
#include "run/tree.h"

namespace rlock::run {

/// A process of ours in the command's group, which tells whether the terminal has told the command to stop: the kernel
/// sends Ctrl-C, Ctrl-\ and a hang-up to the whole foreground group, and to nobody else. It obeys no signal, so those
/// stay pending in it. What the command itself makes of the signal does not matter. Dies with its parent.
class Lookout {
 public:
  /// Forks it, with all signals blocked, as they must be here. Where that fails, nothing is seen.
  void join(pid_t group);

  /// Whether INT, QUIT or HUP was sent to the group since, unless rlock was started with that signal ignored. When the
  /// end of the command can be seen, so can what was sent to its group before.
  bool has_seen_stop() const;
  /// What we are about to send to the group ourselves is not the terminal's.
  void expect(int number);

  /// Ends it. The SIGCHLD comes later.
  void dismiss();
  /// Whether it has not ended yet.
  bool is_there() const;

 private:
  pid_t pid_ = 0;
  Fd status_;  // its file in /proc, opened beforehand
  bool had_seen_stop_ = false;
  std::uint64_t expected_ = 0;  // as a set of signals in /proc: bit 0 is signal 1
};

/// The command's process group and its leader, the process that was started, as seen by the leader's parent: the guard,
/// or a keeper whose guard is dead. The leader is reaped last of all, since nobody else can get the ID of its group
/// until then, and a signal to that ID reaches members that are no descendants of ours any more: what nsenter(1) starts
/// becomes an orphan in another PID namespace, and its child there. A guard that waits for such orphans has reaped the
/// leader; the keeper that takes over from it knows the group by a handle.
class CommandGroup {
 public:
  /// `tree` is the tree below this process, and must outlive the group.
  explicit CommandGroup(Tree& tree) : tree_(&tree) {}

  void started(pid_t leader, bool has_terminal);
  /// For the keeper, while the guard is alive: the guard may have reaped the leader by the time that we take over.
  void started_by_guard(pid_t leader);
  bool was_started() const { return leader_ > 0; }
  pid_t id() const { return leader_; }

  /// Finds out whether the leader has ended.
  void look_at_leader();
  bool has_ended() const { return leader_status_.has_value(); }
  /// The wait status of the leader. Until its end has been seen, that of a process killed by SIGKILL.
  int status() const { return leader_status_.value_or(SIGKILL); }
  bool died_of_signal() const;
  /// Whether the terminal had told the whole group to stop when it ended, whatever it made of that.
  bool was_told_by_terminal() const { return told_by_terminal_; }
  /// Whether the process of ours that watched for this has ended, which takes a moment after the leader's end.
  bool has_dismissed_lookout() const { return !lookout_.is_there(); }

  /// Reaps the children that have ended. Returns whether nobody is left: neither a child nor a member of the group.
  bool is_over() noexcept;
  /// When to ask again, while all that are left are no descendants of ours, whose ends nobody reports.
  Deadline look_again_at() const { return look_again_at_; }

  /// The signal that stopped the leader, if one has since the last call.
  std::optional<int> stopped_by() const;
  /// Sends a signal to every member of the group, including those that outlive the leader.
  void signal(int number) const noexcept;
  /// The same with a signal that somebody has sent to rlock, which is not to be taken for the terminal's.
  void pass_on(int number);
  /// Makes the group the terminal's foreground group. Returns false where that cannot be done.
  bool take_terminal();

 private:
  bool is_leader_there() const { return was_started() && !has_ended(); }
  int send(int number) const noexcept;

  Tree* tree_;
  pid_t leader_ = -1;
  std::optional<int> leader_status_;
  bool reaped_ = false;
  Fd leader_handle_;  // a pidfd, by which the group can still be named once the leader is reaped
  Lookout lookout_;   // while the group has the terminal
  bool told_by_terminal_ = false;
  bool seemed_empty_ = false;  // no living member was seen when is_over() last looked
  Deadline look_again_at_ = never;
};

}  // namespace rlock::run
