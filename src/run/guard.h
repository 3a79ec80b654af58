#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/fd.h"
#include "base/signals.h"
#include "run/messages.h"

namespace rlock::run {

/// What the guard knows of the command before the lock is taken.
struct Command {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=value; the start order adds to it
  int first_signal = 0;                  // to a command that must stop
  Milliseconds kill_after{};             // from that to KILL
  std::optional<Milliseconds> max_runtime;
  bool ignore_sigchld = false;  // inherited by rlock: the command inherits it too
};

/// The command's parent: a process with no network, no lease and no secret of ours, whose one duty is that the command
/// and everything it started are dead by the deadline that the keeper last gave, or as soon as the keeper is gone.
/// It orders its own death for nothing: the keeper may hang, be stopped or killed.
///
///     waiting --start--> running --first signal--> stopping --KILL, or nobody left--> gone
///                           `------ the command ended by itself ------------------------^
class Guard {
 public:
  /// Runs in the process that fork_guard() makes.
  /// The line stays the caller's.
  Guard(Command command, const Line& keeper);

  /// Until the command has ended and the keeper knows, or the keeper is gone.
  void run();

 private:
  enum class State { waiting, running, stopping, gone };

  void look_at_clock();
  void take_orders();
  void obey(const Order& order, const std::string& environment);
  void start(const Order& order, const std::string& environment);
  void look_at_children();
  void report_stopped_child();
  void begin_stop(Cause cause, Deadline kill_at);
  void kill_tree();
  void finish(int survivors);
  void signal_group(int number) const;
  void resume(bool foreground) const;
  void set_timer() const;
  Deadline next_deadline() const;

  Command command_;
  const Line* keeper_;
  Signals signals_;
  Fd timer_;
  State state_ = State::waiting;
  pid_t leader_ = -1;
  std::optional<int> leader_status_;  // set when it was reaped: its group may not be signalled any more
  Cause cause_ = Cause::none;
  Deadline term_at_ = never;  // of the lease
  Deadline kill_at_ = never;
  Deadline runtime_end_ = never;
};

/// The guard's process as its keeper sees it.
struct GuardProcess {
  pid_t pid;
  Line line;
};

/// Forks the guard. Called before there is a connection, a secret or a token that it could inherit. Throws Error{os}.
GuardProcess fork_guard(const Command& command);

}  // namespace rlock::run
