#pragma once

#include <sys/types.h>

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

 private:
  explicit Process(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace rlock::run
