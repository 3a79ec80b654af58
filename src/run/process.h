#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace rlock::run {

/// Opens a descriptor (pidfd) that refers to a process even when its PID is used again, and is readable once the
/// process has ended. Returns an empty one, and sets errno, if that fails.
Fd open_pidfd(pid_t pid);

/// Sends a signal to the process. A failure is ignored: a process that has ended needs no signal.
void send_signal(const Fd& pidfd, int number);
/// Sends a signal to all members of the process group that the process led, even if it has been reaped. Returns -1 and
/// sets errno where there is none, or where the kernel cannot do that.
int send_signal_to_group(const Fd& pidfd, int number);

/// What waitid(2) tells at once of a child of ours; nothing where that has not happened, or it is no child.
std::optional<siginfo_t> look_at_child(pid_t child, int what) noexcept;

/// Gives this process a group and a name of its own, "lock-" and `role`, so that what ends the process that it watches,
/// such as `pkill -9 rlock` or KILL to a job, leaves it alive. Its command line keeps no other word, since `pkill -9 -f
/// backup.sh` must not hit the guard together with the command. The name is cut where the whole line is shorter.
void stand_apart(std::string_view role);

/// Another process of the same user. A descriptor (pidfd) refers to it, so that a signal never reaches a process that
/// got the same PID later.
class Process {
 public:
  /// Throws Error{usage} for a process that does not exist, has ended, or is another user's.
  static Process open(pid_t pid);

  /// Readable once it has ended.
  int fd() const { return fd_.get(); }
  bool has_ended() const;
  void signal(int number) const;
  /// Writes the message where the owner of the process will look: to the process's standard error, if we may open that,
  /// and to syslog. Never blocks.
  void tell(std::string_view message) const;
  /// The descriptors that this object needs.
  std::vector<int> descriptors() const { return {fd_.get(), error_.get()}; }

 private:
  Process(pid_t pid, Fd fd) : pid_(pid), fd_(std::move(fd)) {}
  void share_standard_error();
  bool is_its_standard_error(int fd) const;
  Fd open_standard_error() const;

  pid_t pid_;
  Fd fd_;
  Fd error_;  // our own standard error, where that is a regular file and the process's too
};

/// The words of its command line; none where there is no such process. A long line is cut.
std::vector<std::string> command_line(pid_t process);

/// The name of the program or script that a process runs, as people would look for it: "backup.sh" for `sh -e
/// /opt/backup.sh --full`, "make" for make. Empty where there is no such process, or we may not examine it.
std::string script_name(pid_t process);

}  // namespace rlock::run
