#pragma once

#include <string>

#include "base/boot_timer.h"
#include "base/clock.h"
#include "base/signals.h"
#include "run/command.h"
#include "run/command_group.h"
#include "run/messages.h"
#include "run/sweep.h"
#include "run/timetable.h"
#include "run/tree.h"

namespace rlock::run {

/// The command's parent: a process without network access whose one duty is that the command and everything it started
/// are dead by the deadline that the keeper last gave, or as soon as the keeper is gone. It relies on the keeper for
/// nothing: the keeper may hang, be stopped or be killed.
///
///     waiting --start--> running --the command exits, with --at-end wait--> lingering
///        |                  |                                                  |
///        |                  `---- first signal ----> stopping <----------------'
///        |                                              | KILL is due or ordered, or the keeper is gone
///        |                                              v
///        |                                           killing <-- for the same reasons, from running and lingering
///        `--> gone <-- from any state, when no process is left, or those that are left may stay
class Guard {
 public:
  /// Runs in the process that fork_guard() makes. The line must outlive the guard. Throws Error{os}.
  Guard(Command command, const Line& keeper);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Returns when the guard has done its work and the keeper has closed the line or is gone.
  void run();

 private:
  enum class State { waiting, running, lingering, stopping, killing, gone };

  void watch();
  void kill_without_memory();

  void look_at_clock();
  void take_orders();
  void obey(const Order& order, const std::string& environment);
  void start(const Order& order, const std::string& environment);
  void extend(const Order& order);
  void prepare();
  void pass_on(int number);
  void resume(bool foreground);

  void look_at_children();
  void deal_with_the_rest();

  void begin_stop(Cause cause, Deadline kill_at);
  void allow_for_size();
  void send_first_signal();
  void begin_kill(Cause cause = Cause::none);
  void kill_round();
  void finish(const News& last_word);
  void finish(const Survivors& survivors = {});

  bool has_command() const { return state_ == State::running || state_ == State::lingering; }
  void set_timer();

  Command command_;
  const Line* keeper_;
  bool keeper_is_gone_ = false;
  Signals signals_;
  BootTimer timer_;
  Tree tree_;
  CommandGroup group_{tree_};
  Sweep sweep_{tree_};
  State state_ = State::waiting;
  bool told_to_stop_ = false;  // we passed on a signal that ends a program by default
  Cause cause_ = Cause::none;
  Timetable timetable_;
};

}  // namespace rlock::run
