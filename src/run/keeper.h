#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/loop.h"
#include "base/signals.h"
#include "lock/lock.h"
#include "lock/taker.h"
#include "run/plan.h"
#include "run/renewer.h"
#include "run/supervision.h"
#include "run/verdict.h"

namespace rlock::run {

/// How a run ended, for the exit status and the report.
struct Result {
  Verdict verdict;
  std::optional<lock::Granted> grant;
  Milliseconds waited{0};
  std::optional<Milliseconds> held;
  int renewals = 0;
  std::string message;  // the last error, or why nothing was run
};

/// Takes the lock, has the command run by the guard, renews the lease meanwhile and releases the lock afterwards. It
/// sends orders to the guard, which acts on its own when the last deadline that it was given has passed; where the
/// guard is dead, stopped or late, its Supervision kills the command.
///
///     taking --granted--> holding --the command is over--> releasing
///        |                   `--some processes survive KILL, and we must stop or the lease is over--> no release
///        `--not granted, or a signal--> a Result without a grant, or an Error
class Keeper {
 public:
  /// Forks the guard, so the servers must not be connected to yet. They and the log must outlive the keeper.
  Keeper(Plan plan, const Log& log, std::span<redis::Server> servers);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Failures before the command is started are thrown as Error; the lock is not held then.
  Result run();

 private:
  enum class Phase {
    taking,     // a signal ends rlock
    holding,    // a signal is passed on to the command
    releasing,  // the command has ended; TERM and INT end the wait for a server that is away
  };

  bool take_lock();
  void note_conflict(const lock::Conflict& conflict);
  void start_command();

  void supervise();
  void do_what_is_due();
  Deadline renew_until() const;
  Deadline warning_due() const;
  void warn_of_end();
  Deadline next_renewal() const;
  Deadline overdue() const;
  void renew();
  Order deadlines() const;
  void give_up_to(const lock::Eviction& eviction);
  void lose(Outcome how, std::string_view why);
  void suspend();

  Deadline survivors_due() const;
  void look_at_survivors();
  void leave_survivors(const std::string& why);

  void on_signal();
  void end_by(Signal signal);
  void pass_on(Signal signal);
  void look_at_hang_up();

  void conclude();
  void part_from_terminal(bool typed);
  void part_from_guard();
  void release();
  void report_attempt(const lock::Release& release);
  lock::Release release_in_time();
  void hear_in_release(Signal signal);
  void end_release(int number);
  void note_late_loss();

  bool stops_when_lost() const { return plan_.on_lost == OnLost::kill; }

  Plan plan_;
  const Log* log_;
  Loop& loop_;
  Complaints complaints_;
  Signals signals_;
  Supervision command_;
  lock::Lock lock_;
  Result result_;
  Phase phase_ = Phase::taking;
  std::optional<Renewer> renewer_;        // set once the lock is granted
  std::optional<Outcome> loss_;           // how the lock was lost
  Deadline remind_at_ = Deadline::min();  // when to warn of survivors again
  bool interrupted_ = false;              // by a signal while taking the lock
  bool heard_hang_up_ = false;            // our group got SIGHUP
  Deadline hang_up_due_ = never;          // when the kernel must have sent it to the command's
  int owed_signal_ = 0;                   // the terminal's signal that only the command's group got, and ours is owed
  int typed_in_release_ = 0;              // a Ctrl-C that only our caller and we got, since the command had ended
  bool release_waits_ = false;            // the user knows of the wait, so a signal may end it
  int release_ended_by_ = 0;              // the signal that is to end it
};

}  // namespace rlock::run
