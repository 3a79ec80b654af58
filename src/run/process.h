#pragma once

#include <sys/types.h>

#include <string_view>

#include "base/fd.h"

namespace rlock::run {

/// Another process of ours, held by a descriptor (pidfd), so that what is signalled is never one that got its number
/// later.
class Process {
 public:
  /// Throws Error{usage} for a process that does not exist, has ended, or is another user's.
  static Process open(pid_t pid);

  /// Readable once it has ended.
  int fd() const { return fd_.get(); }
  bool has_ended() const;
  void signal(int number) const;
  /// Says it where those look whose process it is: on its standard error, where we may open that, and in syslog. Waits
  /// for nobody.
  void tell(std::string_view message) const;

 private:
  Process(pid_t pid, Fd fd) : pid_(pid), fd_(std::move(fd)) {}
  Fd open_standard_error() const;

  pid_t pid_;
  Fd fd_;
};

}  // namespace rlock::run
