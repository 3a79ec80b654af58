#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/log.h"
#include "base/loop.h"
#include "base/signals.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "lock/queue.h"
#include "lock/retry.h"
#include "run/guard.h"
#include "run/messages.h"
#include "run/terminal.h"

namespace rlock::run {

enum class OnLost { kill, warn };

/// Everything that `run` was asked for.
struct Plan {
  Command command;
  lock::LockName name;
  lock::Claim claim;
  std::optional<lock::Token> inherited;  // of an enclosing run that holds this lock: re-enter with it
  lock::LeaseTerms lease;
  lock::Patience patience;
  OnLost on_lost = OnLost::kill;
  ExitCode conflict = ExitCode::conflict;
  std::string held_around;  // RLOCK_HELD of the enclosing runs, where they lock on the same server
};

enum class Outcome { completed, conflict, lost, timeout, error, interrupted };

/// What came of it.
struct Result {
  Outcome outcome = Outcome::error;
  int exit_status = static_cast<int>(ExitCode::internal);
  int die_of = 0;  // a signal that rlock is to die of, as its command did, so that a calling shell stops too
  std::optional<int> wait_status;  // of the command
  std::optional<lock::Granted> grant;
  Milliseconds waited{0};
  std::optional<Milliseconds> held;
  int renewals = 0;
  std::string message;  // the last one that matters
};

/// Takes the lock, has the guard run the command, renews the lease while it runs and releases it afterwards. It never
/// touches the command itself: whatever is to happen to it is an order to the guard, which acts without us when the
/// deadline that we last gave it has passed.
class Keeper {
 public:
  /// The connection is not open yet: the guard is forked first. The log and connection stay the caller's.
  Keeper(Plan plan, const Log& log, redis::Connection& connection);

  /// Failures, and signals before the command was started, are thrown as Error; nothing is held then.
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
  Deadline suspend();
  void resume();
  Deadline renew();
  void credit(BootClock::time_point sent);
  Deadline renewal_failed(const Error& why);
  void lose();
  void tell_deadlines() const;
  void on_signal();
  void pass_on(int number);
  void on_news();
  void on_news(const News& news);
  void on_stopping(Cause cause);
  void on_guard_gone();
  void settle_result();
  void settle_ended(int wait_status, Cause cause);
  void release();
  std::string environment() const;

  Plan plan_;
  const Log* log_;
  Loop loop_;
  Signals signals_;
  GuardProcess guard_;
  Terminal terminal_;
  lock::Lock lock_;
  lock::Backoff backoff_;
  Result result_;
  Phase phase_ = Phase::taking;
  std::optional<lock::Lease> lease_;
  pid_t command_pid_ = -1;
  std::optional<News> last_news_;      // not_started, failed or ended
  int survivors_ = 0;                  // processes of the command that could not be killed
  int stopped_by_ = 0;                 // the signal that stopped the command, until it is dealt with
  bool continued_ = false;             // we were, and have not dealt with it
  bool foreground_ = false;            // the command was started or continued with the terminal
  bool was_lent_ = false;              // and had it when it ended
  bool interrupted_ = false;
  bool lost_ = false;                  // the server said that we do not hold it
  bool released_by_command_ = false;
  std::optional<BootClock::time_point> failing_since_;
  std::optional<BootClock::time_point> first_stop_signal_;
};

}  // namespace rlock::run
