#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "moves.h"

namespace rlock::model {

/// All worlds that were reached, each once and with a number, and how each was reached.
class Atlas {
 public:
  using Number = std::uint32_t;

  explicit Atlas(const World& first) : slots_(1U << 20U, nothing) { add(first, 0, {}); }

  void add(const World& world, Number from, const Move& by) {
    if (2 * worlds_.size() > slots_.size())
      grow();
    Number& slot = find(world);
    if (slot != nothing)
      return;
    slot = static_cast<Number>(worlds_.size());
    worlds_.push_back(world);
    origins_.push_back({from, by});
  }

  Number number_of(const World& world) { return find(world); }
  const World& operator[](Number number) const { return worlds_[number]; }
  Number size() const { return static_cast<Number>(worlds_.size()); }

  /// The moves on a short way to a world.
  std::vector<Move> story_of(Number number) const {
    std::vector<Move> moves;
    for (; number != 0; number = origins_[number].from) moves.push_back(origins_[number].by);
    std::reverse(moves.begin(), moves.end());
    return moves;
  }

 private:
  struct Origin {
    Number from;
    Move by;
  };
  static constexpr Number nothing = UINT32_MAX;

  static std::uint64_t hash(const World& world) {
    std::uint64_t hash = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&world);
    for (std::size_t i = 0; i < sizeof world; i += sizeof hash) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + i, std::min(sizeof word, sizeof world - i));
      hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 29U;
    }
    return hash;
  }

  Number& find(const World& world) {
    for (std::uint64_t i = hash(world);; ++i) {
      Number& slot = slots_[i & (slots_.size() - 1)];
      if (slot == nothing || worlds_[slot] == world)
        return slot;
    }
  }

  void grow() {
    slots_.assign(slots_.size() * 2, nothing);
    for (Number number = 0; number < size(); ++number) find(worlds_[number]) = number;
  }

  std::vector<Number> slots_;  // a hash table of the worlds' numbers
  std::vector<World> worlds_;
  std::vector<Origin> origins_;
};

}  // namespace rlock::model
