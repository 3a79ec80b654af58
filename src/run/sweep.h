#pragma once

#include <optional>

#include "base/clock.h"
#include "run/command_group.h"
#include "run/tree.h"

namespace rlock::run {

/// Kills a tree of processes, round by round, until none is left. It never blocks: the caller calls go_on() again when
/// a child has ended or next() has come.
class Sweep {
 public:
  /// How long KILL usually takes. What is left after that hangs in the kernel or runs as another user.
  static constexpr std::chrono::seconds usual{2};

  /// The tree must outlive the sweep.
  explicit Sweep(Tree& tree) : tree_(&tree) {}

  /// Does one round; the first call begins the sweep. Reaps all children that have ended, the command included. Returns
  /// whether no process is left.
  bool go_on(CommandGroup& command);

  /// Kills the whole tree in a slower way that allocates no memory and blocks, for `longest` at most. Returns whether
  /// no process is left.
  static bool sweep_without_memory(const Tree& tree, CommandGroup& command, BootClock::duration longest);

  BootClock::duration elapsed() const { return BootClock::now() - begun_; }
  Deadline next() const { return next_; }

  /// The processes that were left after the last round.
  const Survivors& survivors() const { return survivors_; }
  /// Returns the survivors once, when the usual time is over.
  std::optional<Survivors> report();

 private:
  Tree* tree_;
  Deadline begun_ = never;
  Deadline next_ = never;
  Survivors survivors_;
  bool reported_ = false;
};

}  // namespace rlock::run
