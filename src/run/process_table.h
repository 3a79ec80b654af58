#pragma once

#include <sys/types.h>

#include <vector>

#include "base/fd.h"

namespace rlock::run {

/// Reads from /proc which children a process has, and whether a process is dead. The directory is opened once, so that
/// a file system mounted over it later cannot hide processes from us.
class ProcessTable {
 public:
  /// Throws Error{os} for a directory that exists and cannot be opened.
  explicit ProcessTable(const char* directory = "/proc");

  /// Whether /proc shows our own PID namespace: in any other the same numbers mean other processes. False where there
  /// is no /proc.
  bool is_ours() const;

  /// Includes children that have ended and are not reaped yet.
  std::vector<pid_t> children_of(pid_t parent) const;
  /// The oldest first; where the kernel lists children, those that we adopted are the last.
  std::vector<pid_t> our_children() const { return children_of(self_); }

  /// Sends the signal to each child of this process without allocating memory. It uses PIDs, which is safe, since a
  /// child keeps its own until we reap it.
  void signal_our_children(int number) const noexcept;

  /// Whether no thread of it runs any more. A zombie that a debugger still holds is dead; a process that cannot be
  /// examined counts as alive.
  bool is_dead(pid_t pid) const;

 private:
  std::vector<pid_t> scan_for_children_of(pid_t parent) const;

  Fd open_list(pid_t pid, pid_t thread) const;
  std::vector<pid_t> threads_of(pid_t pid) const;

  Fd proc_;
  pid_t self_;
  bool lists_children_;  // false on kernels built without CONFIG_PROC_CHILDREN
};

}  // namespace rlock::run
