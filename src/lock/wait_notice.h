#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/duration.h"
#include "base/log.h"

namespace rlock::lock {

/// What a user is told of a wait: who is in the way when it begins, on a terminal also how the queue moves on, and how
/// long it took. The log stays the caller's.
class WaitNotice {
 public:
  explicit WaitNotice(const Log& log) : log_(&log) {}

  /// `place`: 1 is the first in the queue, 0 is not in it.
  void waiting(const std::string& lock, const std::string& obstacle, long long place);
  void acquired(const std::string& lock, Milliseconds waited) const;

 private:
  const Log* log_;
  std::optional<BootClock::time_point> told_at_;
  long long told_place_ = 0;
};

}  // namespace rlock::lock
