#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/loop.h"

namespace rlock::lock {

/// Pauses between attempts at a server that fails: none before the first repetition, then 50 ms to 1 s, doubled each
/// time, each shortened at random by up to half so that a crowd does not come back as one.
class Backoff {
 public:
  Milliseconds next();
  void reset() { step_ = Milliseconds{0}; }

 private:
  Milliseconds step_{0};
};

/// A random duration in [low, high].
Milliseconds jitter(Milliseconds low, Milliseconds high);

/// Calls `attempt(deadline)` until it does not throw an Error that may pass, each time with at most `timeout`, until
/// `give_up`; the first attempt always has its full time. A server that was never reached is not asked twice: its
/// address is more likely wrong than its answer late.
template <typename Peer, typename Attempt>
auto persist(Loop& loop, const Peer& peer, Milliseconds timeout, Deadline give_up, Attempt attempt) {
  Backoff backoff;
  Deadline deadline = BootClock::now() + timeout;
  for (;;) {
    try {
      return attempt(deadline);
    } catch (const Error& error) {
      if (!error.may_pass() || !peer.was_reached() || BootClock::now() >= give_up)
        throw;
      const auto again = BootClock::now() + backoff.next();
      const auto pause_end = std::min(again, give_up);
      while (loop.wait(pause_end) != Loop::Wake::deadline) {
      }
      if (again >= give_up)
        throw;
      deadline = std::min(give_up, again + timeout);
    }
  }
}

}  // namespace rlock::lock
