#pragma once

#include "base/clock.h"
#include "base/fd.h"

namespace rlock {

/// A descriptor that becomes readable when a deadline has passed. It wakes a sleeper right after a suspend too, which
/// the time limit of poll(2), where suspended time does not count, does not.
class BootTimer {
 public:
  /// Throws Error{os}.
  BootTimer();

  int fd() const { return fd_.get(); }
  /// Replaces the deadline, and what has come of the one before. `never` disarms it.
  void set(Deadline at) const;

 private:
  Fd fd_;
};

}  // namespace rlock
