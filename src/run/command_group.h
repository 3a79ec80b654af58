#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>

#include "run/tree.h"

namespace rlock::run {

/// The command's process group and its leader, the process that we started, as seen by the leader's parent.
class CommandGroup {
 public:
  /// `tree` is the tree below this process, and must outlive the group.
  explicit CommandGroup(Tree& tree) : tree_(&tree) {}

  void started(pid_t leader, bool has_terminal) {
    leader_ = leader;
    has_terminal_ = has_terminal;
  }
  bool was_started() const { return leader_ > 0; }
  pid_t id() const { return leader_; }

  /// Reaps every child that has ended. Returns whether this process has children left.
  bool reap_children();
  bool has_ended() const { return leader_status_.has_value(); }
  /// The wait status of the leader. Until its end has been seen, that of a process killed by SIGKILL.
  int status() const { return leader_status_.value_or(SIGKILL); }
  bool died_of_signal() const;
  /// Whether it died of Ctrl-C or Ctrl-\, which reach the whole group.
  bool died_of_terminal() const;

  /// The signal that stopped the leader, if one has since the last call.
  std::optional<int> stopped_by() const;
  /// Sends a signal to every member of the group, including those that outlive the leader.
  void signal(int number) const;
  /// Makes the group the terminal's foreground group. Returns false where that cannot be done.
  bool take_terminal();

 private:
  bool is_leader_there() const { return was_started() && !has_ended(); }

  Tree* tree_;
  pid_t leader_ = -1;
  std::optional<int> leader_status_;  // set once the leader has been reaped
  bool has_terminal_ = false;
};

}  // namespace rlock::run
