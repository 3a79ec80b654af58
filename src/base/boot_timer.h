#pragma once

#include "base/clock.h"
#include "base/fd.h"

namespace rlock {

/// A descriptor that becomes readable when a deadline has passed. A deadline that passes while the machine is suspended
/// fires as soon as it resumes; the timeout of poll(2) would not, since it does not count suspended time.
class BootTimer {
 public:
  /// Throws Error{os}.
  BootTimer();

  int fd() const { return fd_.get(); }
  /// Replaces the deadline and clears an expiry that nobody has read yet. `never` disarms the timer.
  void set(Deadline at) const;

 private:
  Fd fd_;
};

}  // namespace rlock
