#pragma once

#include <cstdint>

namespace sim {

/// A stream of numbers that its seed decides (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// A stream of its own for part `n`, so that what one part does, or its absence, changes nothing for the others.
  Random fork(std::uint64_t n) const { return Random{Random{state_ ^ (n * 0xd1342543de82ef95U + 1)}.next()}; }

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  /// In [0, limit).
  std::int64_t below(std::uint64_t limit) { return static_cast<std::int64_t>(next() % limit); }
  /// In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + below(static_cast<std::uint64_t>(high - low) + 1);
  }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace sim
