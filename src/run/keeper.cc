#include "run/keeper.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "lock/retry.h"
#include "lock/wording.h"
#include "run/child.h"
#include "run/scheduling.h"
#include "run/wording.h"

namespace rlock::run {
namespace {

constexpr std::chrono::seconds usual_end_of_leader{1};

/// Those that rlock itself acts on, and all others that end a program unless they tell of its own fault.
sigset_t handled_signals() {
  sigset_t set = Signals::set_of({SIGTERM,
                                  SIGINT,
                                  SIGHUP,
                                  SIGQUIT,
                                  SIGUSR1,
                                  SIGUSR2,
                                  SIGWINCH,
                                  SIGCONT,
                                  SIGTSTP,
                                  SIGCHLD,
                                  SIGALRM,
                                  SIGVTALRM,
                                  SIGPROF,
                                  SIGIO,
                                  SIGPWR,
                                  SIGSTKFLT});
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) ::sigaddset(&set, number);
  return set;
}

}  // namespace

Keeper::Keeper(Plan plan, const Log& log, std::span<redis::Server> servers)
    : plan_(std::move(plan)),
      log_(&log),
      loop_(servers.front().loop()),
      complaints_(log),
      signals_(handled_signals()),
      command_(loop_, log, plan_, complaints_),
      lock_(servers, plan_.name, plan_.max_lease) {
  loop_.watch(signals_.fd(), [this] { on_signal(); });
}

Result Keeper::run() {
  try {
    if (!take_lock())
      return result_;
  } catch (const Error& error) {
    if (!interrupted_)
      throw;
    complaints_.add(error.what());
    result_.message = complaints_.first();
    return result_;
  }
  start_command();
  supervise();
  conclude();
  loop_.at_next_wait([this] { part_from_guard(); });
  release();
  command_.dismiss();  // again, since a release that finds nothing to do has not waited
  command_.reap_guard();
  release_waits_ = false;
  on_signal();  // what has been typed since the last answer
  if (owed_signal_ != 0)
    terminal::signal_ourselves(owed_signal_);
  if (typed_in_release_ != 0) {
    result_.verdict.die_of = typed_in_release_;
    result_.verdict.exit_status = static_cast<int>(killed_by(typed_in_release_));
  }
  result_.message = complaints_.first();
  return result_;
}

/// Returns false when the lock was not granted; the result says why.
bool Keeper::take_lock() {
  const auto start = BootClock::now();
  lock::Taker taker{*log_, lock_, plan_.claim, plan_.lease, plan_.patience};
  const auto taken = taker.take(plan_.inherited);
  plan_.claim = taker.claim();
  result_.waited = time_since(start);
  if (const auto* conflict = std::get_if<lock::Conflict>(&taken)) {
    note_conflict(*conflict);
    return false;
  }
  result_.grant = std::get<lock::Granted>(taken);
  renewer_.emplace(*log_, lock_, plan_.claim, *result_.grant, plan_.lease);
  return true;
}

void Keeper::note_conflict(const lock::Conflict& conflict) {
  result_.verdict = judge(conflict, plan_.conflict);
  const bool is_done = result_.verdict.outcome == Outcome::done || conflict.kind == lock::Conflict::Kind::failed;
  result_.message = fmt::format("{}{}: {}", plan_.name.text(), is_done ? "" : " not acquired", conflict.message);
  log_->notice(result_.message);
}

void Keeper::start_command() {
  phase_ = Phase::holding;
  always(result_.grant.has_value(), "a command is started under a lock");
  log_->step([this] { return describe_start(plan_, renewer_->lease()); });
  try {
    command_.start(deadlines(), lock_variables(plan_, *result_.grant));
  } catch (const Error&) {
    lock::give_back(lock_, plan_.claim, plan_.patience.timeout, *log_);
    throw;
  }
}

void Keeper::supervise() {
  while (!command_.is_over()) {
    switch (command_.jobs().next()) {
      case JobControl::Task::none:
        do_what_is_due();
        break;
      case JobControl::Task::suspend:
        suspend();
        break;
      case JobControl::Task::resume:
        command_.jobs().resume();
        break;
    }
  }
  phase_ = Phase::releasing;
}

/// Does what is due, or waits until something is.
void Keeper::do_what_is_due() {
  const auto now = BootClock::now();
  const Deadline command_due = command_.next(overdue());
  if (now >= command_due) {
    command_.look(overdue());
  } else if (now >= survivors_due()) {
    look_at_survivors();
  } else if (now >= hang_up_due_) {
    look_at_hang_up();
  } else if (now >= warning_due()) {
    warn_of_end();
  } else if (now < next_renewal()) {
    renewer_->sleep(std::min({next_renewal(), command_due, survivors_due(), hang_up_due_, warning_due()}));
  } else {
    renew();
  }
}

/// When to stop trying to renew. A command that is being stopped since its lease runs out may be found to survive KILL,
/// so that goes on until KILL is due. For survivors, which cannot be stopped in time anyway, the lease is used to its
/// very end. If the command may outlive its lease, we go on trying once the user has been told that the lease is
/// over.
Deadline Keeper::renew_until() const {
  if (command_.survivors())
    return renewer_->lease().end();
  if (stops_when_lost())
    return renewer_->lease().kill_at();
  return loss_ ? never : renewer_->lease().end();
}

/// When to tell the user that a command which may outlive its lease has done so.
Deadline Keeper::warning_due() const {
  const bool is_due = !stops_when_lost() && !loss_ && renewer_->is_held();
  return is_due ? renewer_->lease().end() : never;
}

void Keeper::warn_of_end() {
  loss_ = Outcome::lost;
  complaints_.add(fmt::format(
      "lost {}: it could not be renewed in time; the command goes on, and others may get the lock", plan_.name.text()));
}

/// Once it is too late there is no next renewal: the guard kills the command.
Deadline Keeper::next_renewal() const { return BootClock::now() < renew_until() ? renewer_->next() : never; }

/// When we must kill the command ourselves, without the guard.
Deadline Keeper::overdue() const {
  const bool is_due = stops_when_lost() && renewer_->state() != Renewer::State::released;
  return is_due ? renewer_->lease().kill_at() + renewer_->lease().tolerance() : never;
}

void Keeper::renew() {
  if (!renewer_->is_held() || BootClock::now() >= renew_until())
    return;
  const bool extended = renewer_->attempt(renew_until());
  if (extended || renewer_->state() == Renewer::State::released)
    loss_.reset();  // only our lease had ended, not the one on the server
  if (renewer_->state() == Renewer::State::lost && !loss_)
    lose(Outcome::lost, fmt::format("lost {}: {}", plan_.name.text(), how_locks_vanish));
  if (renewer_->state() == Renewer::State::evicted)
    give_up_to(renewer_->eviction());
  if (stops_when_lost() && (extended || renewer_->state() == Renewer::State::released))
    command_.extend(deadlines());
}

/// There are none if the command may outlive its lease, or if nothing is held.
Order Keeper::deadlines() const {
  Order lease{.kind = Order::Kind::lease};
  if (stops_when_lost() && renewer_->is_held()) {
    lease.term_at = renewer_->lease().term_at();
    lease.kill_at = renewer_->lease().kill_at();
    always(lease.term_at <= lease.kill_at && lease.kill_at < renewer_->lease().end(),
           "the guard's deadlines lie before the lease's end");
  }
  return lease;
}

void Keeper::give_up_to(const lock::Eviction& eviction) {
  lose(eviction.kind == lock::Eviction::Kind::replaced ? Outcome::replaced : Outcome::forced,
       fmt::format("{} was {}", plan_.name.text(), lock::describe(eviction)));
}

void Keeper::lose(Outcome how, std::string_view why) {
  loss_ = how;
  const lock::Lease& lease = renewer_->lease();
  if (stops_when_lost())
    command_.stop(std::min(BootClock::now() + plan_.lease.kill_after, lease.kill_at()), lease.tolerance());
  complaints_.add(fmt::format("{}{}", why, stops_when_lost() ? "; stopping the command" : "; the command goes on"));
}

/// When job control has stopped the command, we stop too, so that the shell gets its prompt back. Nobody renews until
/// we are continued; meanwhile the guard watches the deadline.
void Keeper::suspend() {
  renew();  // the user then has a whole lease in which to continue the job
  const auto is_held = [this] { return renewer_->is_held() && !loss_; };
  if (is_held())
    log_->notice(fmt::format("stopped: {} is not renewed until this job continues; it is lost in {}",
                             plan_.name.text(),
                             format_duration(time_until(renewer_->lease().term_at()))));
  command_.jobs().suspend();
  if (is_held() && BootClock::now() >= renewer_->lease().term_at())
    complaints_.add(fmt::format("{}: this job was stopped for longer than its lease lasts", plan_.name.text()));
  renew();  // the lease must be good before the command continues
  command_.jobs().resume();
}

/// When look_at_survivors() is due: from time to time while the lock is held, and at once when it is not.
Deadline Keeper::survivors_due() const {
  if (!command_.survivors())
    return never;
  const bool is_kept = renewer_->is_held();
  return is_kept ? std::min(remind_at_, renewer_->lease().end()) : Deadline::min();
}

/// Survivors still work under our lock, so it is held until they have ended, or for as long as it can be renewed.
void Keeper::look_at_survivors() {
  constexpr std::chrono::minutes interval{1};
  const auto now = BootClock::now();
  if (!renewer_->is_held() || now >= renewer_->lease().end()) {
    leave_survivors("the lock can no longer be renewed");
    return;
  }
  complaints_.add(fmt::format("{} of the command cannot be killed; {} is held until none is left",
                              describe(*command_.survivors()),
                              plan_.name.text()));
  remind_at_ = now + interval;
}

void Keeper::leave_survivors(const std::string& why) {
  complaints_.add(
      fmt::format("{} of the command could not be killed ({}); {} stays taken until its lease runs out, and then "
                  "another may run beside it",
                  describe(*command_.survivors()),
                  why,
                  plan_.name.text()));
  command_.abandon();
}

void Keeper::on_signal() {
  while (const auto signal = signals_.next()) {
    if (signal->number == SIGCHLD)
      command_.reap_others();
    else if (phase_ == Phase::taking)
      end_by(*signal);
    else if (phase_ == Phase::holding)
      pass_on(*signal);
    else
      hear_in_release(*signal);
  }
}

/// Before the command is started a signal does to rlock what it does to any program.
void Keeper::end_by(Signal signal) {
  const int number = signal.number;
  if (number == SIGTSTP && terminal::can_stop_ourselves())
    ::raise(SIGSTOP);
  if (number == SIGTSTP || number == SIGCONT || number == SIGWINCH || interrupted_)
    return;
  interrupted_ = true;  // a second signal must not interrupt the taker while it leaves the queue
  result_.verdict = {.outcome = Outcome::interrupted,
                     .exit_status = static_cast<int>(killed_by(number)),
                     .die_of = signal.typed ? number : 0};
  throw lock::interrupted(plan_.name, number);
}

void Keeper::pass_on(Signal signal) {
  const int number = signal.number;
  heard_hang_up_ = heard_hang_up_ || number == SIGHUP;
  if (number == SIGHUP && command_.jobs().hung_up()) {
    hang_up_due_ = BootClock::now() + usual_end_of_leader;
  } else if (number == SIGCONT) {
    command_.jobs().we_were_continued();
  } else if (command_.survivors() && (number == SIGTERM || number == SIGINT)) {
    leave_survivors(signal_name(number));
  } else {
    log_->step(fmt::format("passing {} on to the command", signal_name(number)));
    command_.pass_on(signal);
  }
}

/// A shell that leads the session ends when its terminal is closed, upon which the kernel sends SIGHUP to the command.
/// An enclosing run that leads the session waits for us, and has passed SIGHUP on to us alone.
void Keeper::look_at_hang_up() {
  hang_up_due_ = never;
  if (!terminal::is_without_leader())
    command_.pass_on({.number = SIGHUP, .typed = false});
}

void Keeper::conclude() {
  Evidence evidence = command_.evidence();
  evidence.stop_when_lost = stops_when_lost();
  if (loss_)
    evidence.loss = loss_;
  result_.verdict = judge(evidence);
  part_from_terminal(evidence.typed);
  log_->step(fmt::format("the command has ended; the status is {}", result_.verdict.exit_status));
  const auto over = evidence.news ? evidence.news->at : BootClock::now();  // earlier if a Ctrl-Z stopped us
  result_.held = std::chrono::duration_cast<Milliseconds>(over - result_.grant->sent);
  result_.renewals = renewer_->renewals();
  if (evidence.news && evidence.news->kind != News::Kind::ended)
    complaints_.add(describe_failure(*evidence.news, plan_));
  if (const auto message = describe_signal(result_.verdict, plan_)) {
    const bool was_asked_for = evidence.passed_on == result_.verdict.command_signal;
    was_asked_for ? log_->notice(*message) : log_->error(*message);  // the latter may be the kernel, for lack of memory
  }
}

/// Takes the terminal back, from a command that could not tidy up with the modes that it had, and notes which of its
/// signals went to the command's group instead of ours.
void Keeper::part_from_terminal(bool typed) {
  const Verdict& verdict = result_.verdict;
  if (verdict.die_of != 0 && !typed)
    owed_signal_ = verdict.die_of;
  else if (!heard_hang_up_ && command_.jobs().hung_up())
    owed_signal_ = SIGHUP;
  const bool ended_by_itself = verdict.outcome == Outcome::completed && !verdict.command_signal;
  command_.jobs().take_back_terminal(ended_by_itself ? JobControl::Modes::as_left : JobControl::Modes::as_lent);
}

/// Done while Redis works on the release: if the guard was woken before, it might run first, and its exit takes as long
/// as a script.
void Keeper::part_from_guard() {
  give_way();
  signals_.drop(SIGCHLD);  // the guard's end must not wake us while Redis answers
  command_.dismiss();
}

void Keeper::release() {
  if (renewer_->state() == Renewer::State::released || command_.survivors())
    return;
  always(command_.is_over(), "a lock is released after its command's last process has ended");
  const std::string& name = plan_.name.text();
  try {
    const lock::Release release = release_in_time();
    switch (release.kind) {
      case lock::Release::Kind::released:
      case lock::Release::Kind::cooling:
        log_->step("released " + name);
        report_attempt(release);
        break;
      case lock::Release::Kind::kept:
        if (plan_.inherited != plan_.claim.token)
          log_->notice(name + ": a run inside this one still holds it, until that run ends or its lease runs out");
        break;
      case lock::Release::Kind::lost:
        note_late_loss();
        break;
    }
  } catch (const Error& error) {
    if (renewer_->state() != Renewer::State::lost)  // else only the history lacks a line
      complaints_.add(describe_failed_release(plan_, renewer_->lease(), result_.verdict, error));
  }
}

/// The last failure is worth a line even with --quiet, since the others then leave without a word. A run inside another
/// one is no attempt of its own.
void Keeper::report_attempt(const lock::Release& release) {
  const auto most = plan_.claim.attempts;
  if (!most || release.failed_attempts == 0 || plan_.inherited == plan_.claim.token)
    return;
  const std::string message = describe_attempt(plan_, release);
  release.failed_attempts >= *most ? log_->error(message) : log_->notice(message);
}

lock::Release Keeper::release_in_time() {
  const lock::End end = end_for_history(result_.verdict, renewer_->eviction().by);
  const auto attempt = [&](Deadline deadline) { return lock_.release(plan_.claim, end, deadline); };
  const auto on_wait = [this] {
    release_waits_ = true;
    end_release(release_ended_by_);
  };
  const bool is_lost = renewer_->state() == Renewer::State::lost;  // then only the history wants to know
  return lock::release_in_time(
      lock_, plan_.patience.timeout, is_lost ? Deadline::min() : renewer_->lease().end(), *log_, attempt, on_wait);
}

/// The command is not told any more, but our caller is to stop, as after any other Ctrl-C.
void Keeper::hear_in_release(Signal signal) {
  if (signal.typed && (signal.number == SIGINT || signal.number == SIGQUIT))
    typed_in_release_ = signal.number;
  end_release(signal.number);
}

/// A signal that comes before the user has been told of the wait is obeyed only then: usually there is no wait.
void Keeper::end_release(int number) {
  if (number == SIGTERM || number == SIGINT)
    release_ended_by_ = number;
  if (release_waits_ && release_ended_by_ != 0)
    throw Error{killed_by(release_ended_by_), "interrupted by " + signal_name(release_ended_by_)};
}

/// The release has found the lock lost. That is news unless a renewal found it before, or the command released the lock
/// itself.
void Keeper::note_late_loss() {
  if (!renewer_->is_held() || result_.verdict.outcome == Outcome::lost)
    return;
  const lock::Fate fate = lock_.fate_of(
      plan_.claim.token, plan_.claim.level, result_.grant->fence, BootClock::now() + plan_.patience.timeout);
  if (std::holds_alternative<lock::GivenBack>(fate))
    return;
  result_.verdict.outcome = Outcome::lost;
  complaints_.add(fmt::format("{} was no longer held when the command ended, so another may have run beside it",
                              plan_.name.text()));
}

}  // namespace rlock::run
