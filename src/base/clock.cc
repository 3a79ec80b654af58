#include "base/clock.h"

#include <sys/timerfd.h>

#include <cerrno>

#include "base/error.h"

namespace rlock {

BootClock::time_point BootClock::now() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return time_point{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec}};
}

BootTimer::BootTimer() : fd_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!fd_)
    throw os_error("timerfd_create", errno);
}

void BootTimer::set(Deadline at) const {
  itimerspec when{};
  if (at != never)
    when.it_value = to_timespec(std::max(at.time_since_epoch(), BootClock::duration{1}));  // zero would disarm it
  ::timerfd_settime(fd(), TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace rlock
