#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/signals.h"
#include "run/complaints.h"
#include "run/guard_process.h"
#include "run/job_control.h"
#include "run/messages.h"
#include "run/plan.h"
#include "run/take_over.h"
#include "run/verdict.h"

namespace rlock::run {

/// The command as the keeper sees it: through the guard, by orders and news, and without it where that fails. The guard
/// must say what it is about when something is due, or it is killed and the tree below it too, by us.
///
///     waiting --start()--> guarded --the guard: ended--> over
///                             |                           ^
///                             `--guard dead, or late--> killing --nobody is left, or abandon()
class Supervision {
 public:
  /// Forks the guard. All references stay the caller's. Throws Error{os}.
  Supervision(Loop& loop, const Log& log, const Plan& plan, Complaints& complaints);

  /// What the guard says before start() is thrown as Error: it could not do its work.
  void start(Order order, const std::string& environment);
  void extend(const Order& lease) const { guard_.line.send(lease); }
  /// The lock is lost: the first signal now, KILL at `kill_at`.
  void stop(Deadline kill_at);
  /// Of a signal that we got. A second one that stops kills, once there was time to obey the first.
  void pass_on(Signal signal);

  bool is_over() const { return state_ == State::over; }
  /// By when look() must be called; `overdue`: when the guard must have killed the command, for the lease's sake.
  Deadline next(Deadline overdue) const;
  /// Takes over from a guard that is late, and goes on with the killing.
  void look(Deadline overdue);

  JobControl& jobs() { return jobs_; }
  /// Whom KILL does not end.
  const std::optional<Survivors>& left() const { return left_; }
  /// They are no business of ours any more.
  void abandon() { state_ = State::over; }

  /// How it went, but for what the keeper knows of the lock.
  const Ending& ending() const { return ending_; }
  /// Lets the guard go, which ends by itself now.
  void dismiss() { guard_.line.close(); }
  void reap_guard() const;

 private:
  enum class State { waiting, guarded, killing, over };

  void on_news();
  void on_news(const News& news);
  void on_lingering();
  void on_stopping(Cause cause);
  void on_killing(Cause cause);
  void on_end(const News& news);
  void on_guard_gone();
  void take_over(bool for_the_lease);
  void begin_killing();
  void kill_round();
  void expect_within(Milliseconds time) { answer_due_ = BootClock::now() + time; }
  Deadline due(Deadline overdue) const;

  Loop* loop_;
  const Log* log_;
  const Plan* plan_;
  Complaints* complaints_;
  GuardProcess guard_;
  JobControl jobs_;
  State state_ = State::waiting;
  std::optional<TakeOver> take_over_;  // while killing
  Ending ending_;
  Deadline answer_due_ = never;  // by when the guard must say something
  bool told_why_ = false;        // the command is stopped
  std::optional<Survivors> left_;
  std::optional<BootClock::time_point> first_stop_signal_;
};

}  // namespace rlock::run
