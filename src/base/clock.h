#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>

#include "base/fd.h"

namespace rlock {

/// CLOCK_BOOTTIME: nobody can set it, and it runs on while the machine is suspended, as our lease does on the server.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

/// A point in time by which something must have happened; absolute, so that it can be handed down through calls.
using Deadline = BootClock::time_point;

constexpr Deadline never = Deadline::max();

/// In whole milliseconds, for arithmetic with options and for messages; negative once the time has passed.
inline std::chrono::milliseconds time_since(BootClock::time_point start) noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(BootClock::now() - start);
}
inline std::chrono::milliseconds time_until(Deadline deadline) noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(deadline - BootClock::now());
}

/// For system calls, which refuse a negative duration: it becomes zero.
inline timespec to_timespec(BootClock::duration duration) noexcept {
  const auto left = std::max(duration, BootClock::duration::zero());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  timespec t{};
  t.tv_sec = static_cast<time_t>(seconds.count());
  t.tv_nsec = static_cast<long>((left - seconds).count());
  return t;
}

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
