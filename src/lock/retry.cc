#include "lock/retry.h"

#include <sys/random.h>

#include <cstdint>

namespace rlock::lock {

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

}  // namespace rlock::lock
