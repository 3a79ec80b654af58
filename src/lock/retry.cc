#include "lock/retry.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cstdint>
#include <exception>

namespace rlock::lock {
namespace {

constexpr Milliseconds longest_release{30'000};
constexpr Milliseconds quick_release{1000};

/// Counts a server that has taken a request as reached.
class AskedIsReached {
 public:
  explicit AskedIsReached(const Lock& lock) : lock_(&lock) {}
  Loop& loop() const { return lock_->loop(); }
  bool was_asked() const { return lock_->was_asked(); }
  bool was_reached() const { return lock_->was_asked() || lock_->was_reached(); }

 private:
  const Lock* lock_;
};

}  // namespace

Milliseconds jitter(Milliseconds low, Milliseconds high) {
  std::uint32_t bits = 0;
  // If there are no random bits the pause is merely not random.
  [[maybe_unused]] const ssize_t count = ::getrandom(&bits, sizeof bits, GRND_NONBLOCK);
  return low + Milliseconds{static_cast<long long>(bits) % (high - low + Milliseconds{1}).count()};
}

Milliseconds Backoff::next() {
  const Milliseconds pause = step_;
  step_ = std::clamp(step_ * 2, Milliseconds{50}, Milliseconds{1000});
  return pause.count() == 0 ? pause : jitter(pause / 2, pause);
}

Release release_in_time(const Lock& lock,
                        Milliseconds timeout,
                        Deadline lease_end,
                        const Log& log,
                        const std::function<Release(Deadline)>& attempt,
                        const std::function<void()>& on_wait) {
  const auto start = BootClock::now();
  const Deadline until = std::min(std::max(lease_end, start + timeout), start + longest_release);
  const AskedIsReached server{lock};
  try {
    const Deadline soon = std::min(until, start + quick_release);
    return persist(server, std::min(timeout, quick_release), soon, attempt);
  } catch (const Error& error) {
    if (!error.may_pass() || !server.was_reached() || BootClock::now() >= until)
      throw;
    log.notice(fmt::format("{} is not released yet: {}; trying for {}",
                           lock.name().text(),
                           error.what(),
                           format_duration(time_until(until))));
    on_wait();
  }
  return persist(server, timeout, until, attempt);
}

void give_back(Lock& lock, const Claim& claim, Milliseconds timeout, const Log& log) noexcept {
  try {
    const Loop::Mute quiet{lock.loop()};
    persist(lock, timeout, [&](Deadline deadline) { lock.cancel(claim, deadline); });
  } catch (const std::exception& error) {
    log.notice(
        fmt::format("could not release {} ({}); its lease will run out by itself", lock.name().text(), error.what()));
  }
}

}  // namespace rlock::lock
