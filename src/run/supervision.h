#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/signals.h"
#include "run/guard.h"
#include "run/messages.h"
#include "run/plan.h"
#include "run/sweep.h"
#include "run/terminal.h"
#include "run/verdict.h"

namespace rlock::run {

/// Errors that are printed as they happen. The last one is kept for the report.
class Complaints {
 public:
  /// The log must outlive this object.
  explicit Complaints(const Log& log) : log_(&log) {}

  void add(std::string message) {
    log_->error(message);
    if (first_.empty())
      first_ = std::move(message);
  }
  /// The cause, of which later ones may be consequences.
  const std::string& first() const { return first_; }

 private:
  const Log* log_;
  std::string first_;
};

/// The command as the keeper sees it: through the guard, by orders and news, and directly where the guard fails. A
/// guard that does not report in time is killed, and then the tree below it. It hides which of the two processes does
/// what.
///
///     waiting --start()--> guarded --the guard: ended--> over
///                             |                           ^
///                             `--guard dead, or late--> killing --nobody is left, or abandon()
class Supervision {
 public:
  /// Forks the guard. Everything referred to must outlive this object. Throws Error{os}.
  Supervision(Loop& loop, const Log& log, const Plan& plan, Complaints& complaints);
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;
  /// Kills the command if it is not over, as when memory has run out. Blocks for as long as a Sweep may take.
  ~Supervision();

  /// Orders the guard to start the command. Throws Error{os} if that cannot be said; the command is not started then. A
  /// failure that the guard reports before this is thrown from the loop as Error.
  void start(Order order, const std::string& environment);
  void extend(const Order& lease) const { guard_.line.send(lease); }
  /// For a lock that is lost: has the first signal sent now and KILL at `kill_at`, which may be late by `tolerance`.
  void stop(Deadline kill_at, Milliseconds tolerance);
  /// Passes on a signal that we got. A second TERM or INT kills the command if it had time to obey the first.
  void pass_on(Signal signal);

  bool is_over() const { return state_ == State::over; }
  /// When look() must be called next. `overdue` is when the lease requires that the guard has killed the command.
  Deadline next(Deadline overdue) const;
  /// Takes over from a guard that is late or has overlooked the command's end, or goes on with the killing.
  void look(Deadline overdue);

  JobControl& jobs() { return jobs_; }
  /// The processes that KILL has not ended, if any.
  const std::optional<Survivors>& survivors() const { return survivors_; }
  /// Stops waiting for the survivors.
  void abandon();

  /// How the command ended; what became of the lock is for the keeper to add.
  const Evidence& evidence() const { return evidence_; }
  /// Reaps children that are neither the guard nor the command's: nobody else does.
  void reap_others() const { take_over_.reap_others(); }
  /// Closes the line, upon which the guard exits by itself.
  void dismiss() { guard_.line.close(); }
  /// Waits until the dismissed guard has ended, and kills one that does not.
  void reap_guard() const;

 private:
  enum class State { waiting, guarded, killing, over };
  struct StopSignal {
    int number;  // TERM or INT
    BootClock::time_point at;
  };

  void note_stop_signal(Signal signal, BootClock::time_point now);
  void on_news();
  void on_news(const News& news);
  void on_lingering();
  void on_stopping(Cause cause);
  void tell_why(Cause cause);
  void on_killing(Cause cause);
  void on_end(const News& news);
  void on_guard_gone();
  enum class Failing { none, life, lease, start, order, end };  // what the guard has failed to see to
  void take_over(Failing failing);
  void give_guard_time();
  void check_guard(bool is_lease_over);
  bool is_guard_stopped() const;
  void look_for_overlooked_end();
  /// Whether the command has ended, and what it left is waited for, not stopped.
  bool is_lingering() const { return is_ending_ && !told_why_ && !guard_kills_; }
  bool was_just_told(BootClock::time_point ended_at) const;
  bool has_reaped_guard() const;
  void kill_round();
  void explain_take_over();
  void expect_within(Milliseconds time) { answer_due_ = BootClock::now() + time; }
  Deadline due(Deadline overdue) const;

  Loop* loop_;
  const Log* log_;
  const Plan* plan_;
  Complaints* complaints_;
  GuardProcess guard_;
  JobControl jobs_;
  State state_ = State::waiting;
  TakeOver take_over_{guard_.pid};
  bool has_taken_over_ = false;
  Failing failing_ = Failing::none;  // why we took over, until the user has been told
  pid_t leader_ = 0;                 // the command's first process, once the guard has told us
  Evidence evidence_;
  Deadline answer_due_ = never;  // when the guard must have reported
  Deadline start_due_ = never;   // when it must have started the command
  Deadline next_check_ = never;  // of whether it still does its work
  pid_t overlooked_ = 0;         // a process that the guard has not reaped, by the last check
  bool is_ending_ = false;       // the guard has said that the command has ended, or that it stops it
  bool told_why_ = false;        // the user knows why the command is stopped
  bool guard_kills_ = false;     // it has said so; in State::killing it is we who kill
  std::optional<Survivors> survivors_;
  std::optional<StopSignal> first_stop_signal_;
  std::optional<BootClock::time_point> told_to_stop_at_;  // or HUP or QUIT, the last one
};

}  // namespace rlock::run
