#pragma once

#include <sys/types.h>

#include <string_view>

#include "base/fd.h"

namespace rlock::run {

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

 private:
  Process(pid_t pid, Fd fd) : pid_(pid), fd_(std::move(fd)) {}
  Fd open_standard_error() const;

  pid_t pid_;
  Fd fd_;
};

}  // namespace rlock::run
