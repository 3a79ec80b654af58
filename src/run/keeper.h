#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/loop.h"
#include "base/signals.h"
#include "lock/lock.h"
#include "lock/taker.h"
#include "run/complaints.h"
#include "run/plan.h"
#include "run/renewer.h"
#include "run/supervision.h"
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

/// Takes the lock, has the command run under supervision, renews the lease meanwhile and releases the lock afterwards.
/// It never touches the command itself: whatever is to happen to it is an order to the guard, which acts without us
/// when the deadline that we last gave it has passed.
///
///     taking --granted--> holding --the command is over--> releasing
///        |                   `--KILL does not end all, and we are told to stop, or the lease is over--> (left to it)
///        `--refused, or a signal--> a Result without a grant, or an Error
class Keeper {
 public:
  /// The servers are not connected to yet: the guard is forked first. They and the log stay the caller's.
  Keeper(Plan plan, const Log& log, std::span<redis::Server> servers);

  /// Failures before the command was started are thrown as Error; nothing is held then.
  Result run();

 private:
  enum class Phase {
    taking,     // a signal ends us
    holding,    // a signal is the command's
    releasing,  // the command has ended
  };

  bool take_lock();
  void note_conflict(const lock::Conflict& conflict);
  void start_command();

  void hold();
  void hold_on();
  Deadline give_up() const;
  Deadline next_renewal() const;
  Deadline overdue() const;
  void renew();
  void give_up_to(const lock::Eviction& eviction);
  void lose(Outcome how, std::string_view why);
  void suspend();

  Deadline survivors_due() const;
  void look_at_survivors();
  void leave_survivors(const std::string& why);

  void on_signal();
  void end_by(Signal signal);
  void pass_on(Signal signal);

  void settle();
  lock::End end() const;
  void release();

  bool stops_when_lost() const { return plan_.on_lost == OnLost::kill; }

  Plan plan_;
  const Log* log_;
  Loop loop_;
  Complaints complaints_;
  Signals signals_;
  Supervision command_;
  lock::Lock lock_;
  Result result_;
  Phase phase_ = Phase::taking;
  std::optional<Renewer> renewer_;      // while we hold
  std::optional<Outcome> loss_;         // how the lock was lost
  Deadline tell_at_ = Deadline::min();  // of survivors, again
  bool interrupted_ = false;            // while taking the lock
};

}  // namespace rlock::run
