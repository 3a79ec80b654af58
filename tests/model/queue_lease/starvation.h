#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "atlas.h"

namespace rlock::model {

/// Looks for a way in which the watched client, the first of each world, waits for ever. Time passes only when nobody
/// has anything left to do, so waiting for ever means going round in a cycle. If there is none, the longest path is the
/// longest wait. (Faults are used up, so no cycle has any.)
class Starvation {
 public:
  Starvation(Atlas& atlas, Mutant mutant) : atlas_(atlas), mutant_(mutant), waits_(atlas.size(), unknown) {}

  /// A world from which a path leads back to itself.
  std::optional<Atlas::Number> find() {
    for (Atlas::Number number = 0; number < atlas_.size(); ++number) {
      if (waits_[number] == unknown && is_waiting(number)) {
        if (const auto round = follow(number))
          return round;
      }
    }
    return std::nullopt;
  }

  int longest_wait() const { return longest_; }

 private:
  static constexpr Byte unknown = 255;
  static constexpr Byte open = 254;

  struct Way {
    Atlas::Number to;
    Byte ticks;
  };
  struct Frame {
    Atlas::Number number;
    std::vector<Way> ways;
    std::size_t next = 0;
  };

  bool is_waiting(Atlas::Number number) const { return atlas_[number].client[0].waits(); }

  Frame enter(Atlas::Number number) {
    Frame frame{number, {}};
    waits_[number] = open;
    for_each_next(atlas_[number], mutant_, [&](const Move& move, const World& world) {
      const Atlas::Number to = atlas_.number_of(world);
      if (is_waiting(to))
        frame.ways.push_back({to, static_cast<Byte>(move.is_tick() ? 1 : 0)});
    });
    return frame;
  }

  std::optional<Atlas::Number> follow(Atlas::Number start) {
    std::vector<Frame> frames{enter(start)};
    while (!frames.empty()) {
      Frame& frame = frames.back();
      if (frame.next == frame.ways.size()) {
        leave(frame);
        frames.pop_back();
        continue;
      }
      const Atlas::Number to = frame.ways[frame.next++].to;
      if (waits_[to] == open)
        return to;
      if (waits_[to] == unknown)
        frames.push_back(enter(to));
    }
    return std::nullopt;
  }

  void leave(const Frame& frame) {
    Byte wait = 0;
    for (const Way& way : frame.ways) wait = std::max<Byte>(wait, waits_[way.to] + way.ticks);
    waits_[frame.number] = wait;
    longest_ = std::max<int>(longest_, wait);
  }

  Atlas& atlas_;
  Mutant mutant_;
  std::vector<Byte> waits_;  // for each world the longest wait from there on, in ticks
  int longest_ = 0;
};

}  // namespace rlock::model
