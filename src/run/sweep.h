#pragma once

#include <optional>

#include "base/clock.h"
#include "run/command_group.h"
#include "run/tree.h"

namespace rlock::run {

/// Kills a tree, round by round, until nobody is left. It waits for nothing: its caller calls again, when a child has
/// ended or next() has come.
class Sweep {
 public:
  /// How long KILL usually takes. Who is left after that hangs, or became another user's.
  static constexpr std::chrono::seconds usual{2};

  /// The tree stays the caller's.
  explicit Sweep(Tree& tree) : tree_(&tree) {}

  /// Begins at the first call. True when nobody is left; who has ended is reaped, the command among them.
  bool go_on(CommandGroup& command);

  /// All of it at once, by a slower way that takes no memory and waits. True when nobody is left after that time.
  static bool sweep_without_memory(const Tree& tree, CommandGroup& command, BootClock::duration longest);

  bool has_begun() const { return begun_ != never; }
  BootClock::duration lasts() const { return BootClock::now() - begun_; }
  Deadline next() const { return next_; }

  /// Who was left at the last round.
  const Survivors& survivors() const { return survivors_; }
  /// The same, once, when the usual time is over.
  std::optional<Survivors> report();

 private:
  Tree* tree_;
  Deadline begun_ = never;
  Deadline next_ = never;
  Survivors survivors_;
  bool reported_ = false;
};

}  // namespace rlock::run
