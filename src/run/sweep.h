#pragma once

#include <sys/types.h>

#include <optional>

#include "base/clock.h"
#include "run/command_group.h"
#include "run/tree.h"

namespace rlock::run {

/// Kills a tree of processes, round by round, until none is left. It never blocks: the caller calls is_over() when a
/// child has ended, and go_on() again when next() has come. It hides what a round does, and how it manages without
/// memory or descriptors.
class Sweep {
 public:
  /// How long KILL usually takes. What is left after that hangs in the kernel or runs as another user.
  static constexpr std::chrono::seconds usual{2};
  /// How long to go on when nobody waits for the report any more, or when memory or descriptors have run out.
  static constexpr std::chrono::seconds longest{10};

  /// The tree must outlive the sweep.
  explicit Sweep(Tree& tree) : tree_(&tree) {}

  /// Does one round; the first call begins the sweep. Reaps all children that have ended, the command included. Returns
  /// whether no process is left.
  bool go_on(CommandGroup& command) noexcept;

  /// To be called when a child has ended: reaps as go_on() does, and returns whether nobody is left. Does nothing where
  /// the last look took long and has just been, since the processes need the processor too, to die, or where the next
  /// round is due.
  bool is_over(CommandGroup& command) noexcept;

  /// Kills the whole tree in a slower way that allocates no memory and blocks, for `longest` at most. Returns whether
  /// no process is left.
  static bool sweep_without_memory(const Tree& tree, CommandGroup& command) noexcept;

  BootClock::duration elapsed() const { return BootClock::now() - begun_; }
  Deadline next() const { return next_; }

  /// The processes that were left after the last round.
  const Survivors& survivors() const { return survivors_; }
  /// Returns the survivors once, when the usual time is over, or the longest if a round kills one generation only.
  std::optional<Survivors> report();

 private:
  void rest_after(BootClock::time_point begin);

  Tree* tree_;
  Deadline begun_ = never;
  Deadline next_ = never;
  Deadline rests_until_ = Deadline::min();
  Survivors survivors_;
  bool saw_all_ = true;  // the last round had the memory and the descriptors to find the whole tree
  bool reported_ = false;
};

/// What the keeper does when the guard is dead, stopped, frozen or hangs: it kills the guard and the whole tree below
/// it. All that the killing needs is opened when this is made, which is long before. Children of the keeper that the
/// guard did not leave to it are spared: they belong to a script that became rlock by exec, or are orphans of others.
class TakeOver {
 public:
  /// The guard must not be reaped. Throws Error{os} where /proc exists and cannot be opened.
  explicit TakeOver(pid_t guard) : guard_(guard) { tree_.is_left_by(guard); }
  TakeOver(const TakeOver&) = delete;
  TakeOver& operator=(const TakeOver&) = delete;

  /// The guard has told which process is the command's first.
  void started(pid_t leader) { command_.started_by_guard(leader); }
  /// Reaps the children that the guard did not leave to us.
  void reap_others() const { tree_.reap_others(); }
  /// Kills the guard.
  void begin() const noexcept;
  /// Does one round. Returns whether no process of the command is left; the guard itself may be, if it hangs.
  bool go_on() noexcept { return sweep_.go_on(command_); }
  Deadline next() const { return sweep_.next(); }
  std::optional<Survivors> report() { return sweep_.report(); }

  /// The rest in one call, which blocks, for a keeper that can do nothing else any more.
  void finish_without_memory() noexcept { Sweep::sweep_without_memory(tree_, command_); }

 private:
  pid_t guard_;
  Tree tree_;
  CommandGroup command_{tree_};
  Sweep sweep_{tree_};
};

}  // namespace rlock::run
