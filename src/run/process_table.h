#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/fd.h"

namespace rlock::run {

/// Reads from /proc which children a process has, who is in a process group, and whether a process is dead. What a kill
/// needs is opened once and beforehand: a file system mounted over /proc later cannot hide processes from us, and our
/// own children can be read even when no file can be opened and no memory is left.
class ProcessTable {
 public:
  /// Throws Error{os} for a directory that exists and cannot be opened.
  explicit ProcessTable(const char* directory = "/proc");

  /// Whether /proc shows our own PID namespace: in any other the same numbers mean other processes. False where there
  /// is no /proc.
  bool is_ours() const;

  /// 0 for a process that has none here, or cannot be examined.
  pid_t parent_of(pid_t pid) const;

  /// Whether `ancestor` is the process itself, its parent, its parent's parent, and so on.
  bool descends(pid_t pid, pid_t ancestor) const;

  /// Includes children that have ended and are not reaped yet.
  std::vector<pid_t> children_of(pid_t parent) const;
  /// The oldest first; where the kernel lists children, those that we adopted are the last.
  std::vector<pid_t> our_children() const { return children_of(self_); }

  /// The same one by one, without allocating memory; where the kernel does not list children, in the order of PIDs. A
  /// child that is reaped meanwhile may hide others from a reader.
  class Children {
   public:
    explicit Children(const ProcessTable& table) : Children(table, table.our_list_) {}
    Children(const ProcessTable& table, const Fd& list);
    /// 0 after the last.
    pid_t next();

   private:
    pid_t next_number();
    pid_t next_entry();
    bool refill();

    const ProcessTable* table_;
    const Fd* list_;  // if it is empty, /proc is searched
    std::array<char, 2048> buffer_;
    std::size_t used_ = 0;
    std::size_t filled_ = 0;
  };

  /// The members of a process group that are not dead, wherever they are. Nothing if that cannot be found out.
  std::optional<std::vector<pid_t>> members_of(pid_t group) const;

  /// Whether no thread of it runs any more. A zombie that a debugger still holds is dead; a process that cannot be
  /// examined counts as alive.
  bool is_dead(pid_t pid) const;
  /// Whether a debugger holds it, or it is gone.
  bool is_traced(pid_t pid) const;

 private:
  std::vector<pid_t> scan_for_children_of(pid_t parent) const;

  Fd open_list(pid_t pid, pid_t thread) const;
  std::vector<pid_t> threads_of(pid_t pid) const;

  Fd proc_;
  pid_t self_;
  Fd our_list_;  // empty on kernels built without CONFIG_PROC_CHILDREN
};

}  // namespace rlock::run
