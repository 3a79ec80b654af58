#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/loop.h"
#include "base/signals.h"
#include "lock/lock.h"
#include "run/guard_process.h"
#include "run/messages.h"
#include "run/plan.h"
#include "run/renewer.h"
#include "run/terminal.h"
#include "run/verdict.h"

namespace rlock::run {

/// What came of it.
struct Result {
  Verdict verdict;
  std::optional<lock::Granted> grant;
  Milliseconds waited{0};
  std::optional<Milliseconds> held;
  int renewals = 0;
  std::string message;  // the one that matters most
};

/// Takes the lock, has the guard run the command, renews the lease while it runs and releases it afterwards. It never
/// touches the command itself: whatever is to happen to it is an order to the guard, which acts without us when the
/// deadline that we last gave it has passed.
class Keeper {
 public:
  /// The servers are not connected to yet: the guard is forked first. They and the log stay the caller's.
  Keeper(Plan plan, const Log& log, std::span<redis::Server> servers);

  /// Failures before the command was started are thrown as Error; nothing is held then.
  Result run();

 private:
  enum class Phase {
    taking,     // a signal ends us
    running,    // a signal is the command's
    releasing,  // the command has ended
  };

  bool take_lock();
  void start_command();

  void hold();
  Deadline give_up() const;
  Deadline next_renewal() const;
  Deadline overdue() const;
  void take_over();
  void renew();
  void lose();
  void suspend();
  void resume();

  void on_signal();
  void end_by(Signal signal);
  void pass_on(Signal signal);
  void on_news();
  void on_news(const News& news);
  void on_stopping(Cause cause);
  void on_guard_gone();

  void settle();
  std::string describe_failure(const News& news) const;
  void release();
  void complain(std::string message);

  bool stops_when_lost() const { return plan_.on_lost == OnLost::kill; }

  Plan plan_;
  const Log* log_;
  Loop loop_;
  Signals signals_;
  GuardProcess guard_;
  Terminal terminal_;
  lock::Lock lock_;
  Result result_;
  Phase phase_ = Phase::taking;
  std::optional<Renewer> renewer_;  // while we hold
  Ending ending_;
  bool told_why_ = false;     // the command is stopped
  int survivors_ = 0;         // processes of the command that could not be killed
  int stopped_by_ = 0;        // the signal that stopped the command, until it is dealt with
  bool continued_ = false;    // we were, and have not dealt with it
  bool interrupted_ = false;  // while taking the lock
  std::optional<BootClock::time_point> first_stop_signal_;
};

}  // namespace rlock::run
