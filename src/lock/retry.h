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

/// Calls `attempt(deadline)` until it does not throw Error{unavailable}, each time with at most `timeout`, until
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
      const auto again = BootClock::now() + backoff.next();
      if (error.code() != ExitCode::unavailable || !peer.was_reached() || again >= give_up)
        throw;
      while (loop.wait(again) != Loop::Wake::deadline) {
      }
      deadline = std::min(give_up, again + timeout);
    }
  }
}

}  // namespace rlock::lock
