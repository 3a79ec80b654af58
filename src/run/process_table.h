#pragma once

#include <sys/types.h>

#include <vector>

#include "base/fd.h"

namespace rlock::run {

/// What /proc says of processes: who are a process' children, and who is dead. It is opened once, so that nobody who
/// mounts something over it later can blind us.
class ProcessTable {
 public:
  /// Throws Error{os} where /proc is there and cannot be opened.
  ProcessTable();

  /// Whether it shows the PID namespace that we live in: any other's numbers mean other processes.
  /// False where there is no /proc.
  bool is_ours() const;

  /// Those that have ended and are not reaped yet included.
  std::vector<pid_t> children_of(pid_t parent) const;
  std::vector<pid_t> our_children() const { return children_of(self_); }

  /// Sends the signal to each child of this process. It needs no memory, and a child's number stays its own until we
  /// reap it.
  void signal_our_children(int number) const noexcept;

  /// Whether nothing of it runs any more: one that a debugger has not let go yet is dead too. Who cannot be looked at
  /// is taken to be alive.
  bool is_dead(pid_t pid) const;

 private:
  std::vector<pid_t> scan_for_children_of(pid_t parent) const;

  Fd open_list(pid_t pid, pid_t thread) const;
  std::vector<pid_t> threads_of(pid_t pid) const;

  Fd proc_;
  pid_t self_;
  bool lists_children_;  // not in kernels built without CONFIG_PROC_CHILDREN
};

}  // namespace rlock::run
