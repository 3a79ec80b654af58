#pragma once

#include <algorithm>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/log.h"
#include "lock/lock.h"

namespace rlock::lock {

/// The pauses between attempts at a server that fails: none before the first repetition, then 50 ms to 1 s, doubling
/// each time. Each is shortened at random by up to half, so that a crowd of clients does not come back all at once.
class Backoff {
 public:
  Milliseconds next();
  void reset() { step_ = Milliseconds{0}; }

 private:
  Milliseconds step_{0};
};

/// Keeps messages and answers, which anybody may have sent, from making us ask without a pause: it allows a few
/// questions at once, then one every 40 ms.
class Throttle {
 public:
  /// When the next question may be put.
  Deadline next() const { return paid_until_ - few * pause; }
  void note_question() { paid_until_ = std::max(paid_until_, BootClock::now()) + pause; }

 private:
  static constexpr Milliseconds pause{40};
  static constexpr int few = 4;
  Deadline paid_until_ = BootClock::now();
};

/// A random duration in [low, high].
Milliseconds jitter(Milliseconds low, Milliseconds high);

/// Repeats `attempt(deadline)`, each time with at most `timeout`, while it throws an Error that may pass, until
/// `give_up`, pausing in the peer's loop; the first attempt always has its full time. A server that has taken a request
/// but never answered one is asked again for no longer than `timeout`. One that we could never connect to is not asked
/// again: its address is more likely wrong than its answer late. It throws the last failure that has a cause: a final
/// timeout never masks that.
template <typename Peer, typename Attempt>
auto persist(const Peer& peer, Milliseconds timeout, Deadline give_up, Attempt attempt) {
  Backoff backoff;
  const auto start = BootClock::now();
  Deadline deadline = start + timeout;
  std::optional<Error> cause;
  for (;;) {
    try {
      return attempt(deadline);
    } catch (const Error& error) {
      if (!cause || !error.may_pass() || BootClock::now() < deadline)
        cause = error;
      const Deadline silence_ends = peer.was_asked() ? std::min(give_up, start + timeout) : start;
      const Deadline until = peer.was_reached() ? give_up : silence_ends;
      if (!error.may_pass() || BootClock::now() >= until)
        throw Error{*cause};
      const auto again = BootClock::now() + backoff.next();
      peer.loop().wait_out(std::min(again, until));
      if (again >= until)
        throw Error{*cause};
      deadline = std::min(until, again + timeout);
    }
  }
}

/// The same for as long as one answer may take.
template <typename Peer, typename Attempt>
auto persist(const Peer& peer, Milliseconds timeout, Attempt attempt) {
  return persist(peer, timeout, BootClock::now() + timeout, attempt);
}

/// Repeats a release until it is answered: a lock that is not given back stays taken, and work whose success nobody
/// hears of is done again. It goes on for as long as the lease lasts, at least for `timeout` and at most for 30 s, with
/// a server that has taken the request although it never answered one. After a second it tells why and until when, and
/// calls `on_wait`; what that throws, and what a handler of the loop throws, ends the attempts.
Release release_in_time(const Lock& lock,
                        Milliseconds timeout,
                        Deadline lease_end,
                        const Log& log,
                        const std::function<Release(Deadline)>& attempt,
                        const std::function<void()>& on_wait);

/// Gives back what was granted to a claim and nobody has used. No signal interrupts that, and a failure is only told:
/// it must not hide what has made us give the lock back.
void give_back(Lock& lock, const Claim& claim, Milliseconds timeout, const Log& log) noexcept;

}  // namespace rlock::lock
