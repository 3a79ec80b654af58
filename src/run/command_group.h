#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>

#include "run/tree.h"

namespace rlock::run {

/// The command's first process, the leader of its process group, and that group, as the leader's parent sees them.
class CommandGroup {
 public:
  /// The tree, of this process, stays the caller's.
  explicit CommandGroup(Tree& tree) : tree_(&tree) {}

  void started(pid_t leader, bool has_terminal) {
    leader_ = leader;
    has_terminal_ = has_terminal;
  }
  bool was_started() const { return leader_ > 0; }
  pid_t number() const { return leader_; }

  /// Reaps whoever has ended. True when children of ours are left.
  bool reap_children();
  bool has_ended() const { return leader_status_.has_value(); }
  /// The wait status of the leader; that of one that was killed while nobody has seen it end.
  int status() const { return leader_status_.value_or(SIGKILL); }
  bool died_of_signal() const;
  /// By Ctrl-C or Ctrl-\, which reach the whole group.
  bool died_of_terminal() const;

  /// The signal that has stopped the leader since the last call.
  std::optional<int> stopped_by() const;
  /// To all that are in the group, as long as anybody is.
  void signal(int number) const;
  /// Makes the group the terminal's foreground group. False where that cannot be done.
  bool take_terminal();

 private:
  bool is_leader_there() const { return was_started() && !has_ended(); }

  Tree* tree_;
  pid_t leader_ = -1;
  std::optional<int> leader_status_;  // set when it was reaped
  bool has_terminal_ = false;
};

}  // namespace rlock::run
