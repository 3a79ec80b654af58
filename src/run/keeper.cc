#include "run/keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "lock/retry.h"
#include "lock/taker.h"
#include "run/environment.h"
#include "run/scheduling.h"
#include "run/sweep.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

Milliseconds since(BootClock::time_point start) {
  return std::chrono::duration_cast<Milliseconds>(BootClock::now() - start);
}

}  // namespace

Keeper::Keeper(Plan plan, const Log& log, std::span<redis::Server> servers)
    : plan_(std::move(plan)),
      log_(&log),
      signals_({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP}),
      guard_(fork_guard(plan_.command)),
      lock_(servers, plan_.name, plan_.max_lease) {
  adopt_orphans();
  loop_.watch(signals_.fd(), [this] { on_signal(); });
  loop_.watch(guard_.line.fd(), [this] { on_news(); });
}

Result Keeper::run() {
  try {
    if (!take_lock())
      return result_;
  } catch (const Error& error) {
    if (!interrupted_)
      throw;
    complain(error.what());
    return result_;
  }
  start_command();
  hold();
  ending_.had_terminal = terminal_.is_lent();
  terminal_.take_back();
  settle();
  give_way();
  guard_.line.close();
  release();
  while (::waitpid(guard_.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (result_.verdict.die_of != 0 && !ending_.typed)
    Terminal::interrupt_ourselves(result_.verdict.die_of);
  return result_;
}

/// False when somebody else has it.
bool Keeper::take_lock() {
  const auto start = BootClock::now();
  lock::Taker taker{loop_, *log_, lock_, plan_.claim, plan_.lease, plan_.patience};
  const auto taken = taker.take(plan_.inherited);
  plan_.claim = taker.claim();
  result_.waited = since(start);
  if (const auto* conflict = std::get_if<lock::Conflict>(&taken)) {
    result_.verdict = {.outcome = Outcome::conflict, .exit_status = static_cast<int>(plan_.conflict)};
    result_.message = fmt::format("{} not acquired: {}", plan_.name.text(), conflict->message);
    log_->notice(result_.message);
    return false;
  }
  result_.grant = std::get<lock::Granted>(taken);
  renewer_.emplace(loop_, *log_, lock_, plan_.claim, *result_.grant, plan_.lease);
  return true;
}

void Keeper::start_command() {
  phase_ = Phase::running;
  Order start{.kind = Order::Kind::start, .foreground = Terminal::is_ours()};
  if (stops_when_lost()) {
    start.term_at = renewer_->lease().term_at();
    start.kill_at = renewer_->lease().kill_at();
  }
  guard_.line.send(start, lock_variables(plan_, *result_.grant));
}

void Keeper::hold() {
  while (phase_ == Phase::running) {
    if (stopped_by_ != 0) {
      suspend();
    } else if (continued_) {
      resume();
    } else if (BootClock::now() >= overdue()) {
      take_over();
    } else if (BootClock::now() < next_renewal()) {
      loop_.wait(std::min(next_renewal(), overdue()));
    } else {
      renew();
    }
  }
}

Deadline Keeper::give_up() const { return stops_when_lost() ? renewer_->lease().term_at() : never; }

/// Never, once it is too late: the guard has begun to stop the command.
Deadline Keeper::next_renewal() const { return BootClock::now() < give_up() ? renewer_->next() : never; }

/// When the guard must have killed the command, a quarter of the margin included: the rest is for us to do it.
Deadline Keeper::overdue() const {
  const bool is_due = stops_when_lost() && renewer_->state() != Renewer::State::released;
  return is_due ? renewer_->lease().kill_at() + plan_.lease.margin / 4 : never;
}

/// The guard has not done its work: it is stopped, perhaps. Its death kills the command, and leaves us the rest.
void Keeper::take_over() {
  ending_.lost = true;
  ::kill(guard_.pid, SIGKILL);
  loop_.wait(never);  // for its end of file, or the news that it had sent before
}

void Keeper::renew() {
  const bool extended = renewer_->attempt(give_up());
  if (renewer_->state() == Renewer::State::lost)
    lose();
  if (!stops_when_lost())
    return;
  Order lease{.kind = Order::Kind::lease};
  if (extended) {
    lease.term_at = renewer_->lease().term_at();
    lease.kill_at = renewer_->lease().kill_at();
    guard_.line.send(lease);
  } else if (renewer_->state() == Renewer::State::released) {
    guard_.line.send(lease);  // no deadline any more
  }
}

void Keeper::lose() {
  ending_.lost = true;
  if (stops_when_lost()) {
    const Deadline kill_at = BootClock::now() + plan_.lease.kill_after;
    guard_.line.send({.kind = Order::Kind::stop, .kill_at = std::min(kill_at, renewer_->lease().kill_at())});
  }
  complain(fmt::format("lost {}: it was released by force, deleted or taken over{}",
                       plan_.name.text(),
                       stops_when_lost() ? "; stopping the command" : "; the command goes on"));
}

/// The command was stopped. If that was job control's doing, the shell wants its prompt: we stop too, and nobody renews
/// until we are continued; the guard watches the deadline meanwhile.
void Keeper::suspend() {
  const int number = std::exchange(stopped_by_, 0);
  const bool job_control = number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
  if (!job_control && !terminal_.is_lent())
    return;
  const auto left = std::chrono::duration_cast<Milliseconds>(renewer_->lease().term_at() - BootClock::now());
  log_->notice(fmt::format("stopped: {} is not renewed until this job continues; it is lost in {}",
                           plan_.name.text(),
                           format_duration(left)));
  terminal_.take_back();
  if (!Terminal::stop_ourselves())  // then the command could not have been without us: what the kernel does about that
    guard_.line.send({.kind = Order::Kind::signal, .signal = SIGHUP});
  if (BootClock::now() < give_up())
    renew();  // before the command goes on
  resume();
}

void Keeper::resume() {
  continued_ = false;
  guard_.line.send({.kind = Order::Kind::resume, .foreground = Terminal::is_ours()});
}

void Keeper::on_signal() {
  while (const auto signal = signals_.next()) {
    if (phase_ == Phase::taking)
      end_by(*signal);
    if (phase_ == Phase::running)
      pass_on(*signal);
  }
}

/// A signal before the command was started: what it would do to any program.
void Keeper::end_by(Signal signal) {
  const int number = signal.number;
  if (number == SIGTSTP)
    ::raise(SIGSTOP);
  if (number == SIGTSTP || number == SIGCONT || number == SIGWINCH || interrupted_)
    return;
  interrupted_ = true;  // once: giving back what was asked for must not be interrupted
  result_.verdict = {.outcome = Outcome::interrupted,
                     .exit_status = static_cast<int>(killed_by(number)),
                     .die_of = signal.typed ? number : 0};
  throw Error{killed_by(number),
              fmt::format("interrupted by {} before {} was acquired", signal_name(number), plan_.name.text())};
}

void Keeper::pass_on(Signal signal) {
  const int number = signal.number;
  if (number == SIGHUP && terminal_.hung_up())
    return;  // the kernel has told the command itself
  if (number == SIGCONT) {
    continued_ = true;
    return;
  }
  const auto now = BootClock::now();
  const bool stop = number == SIGTERM || number == SIGINT;
  if (stop && first_stop_signal_ && now >= *first_stop_signal_ + plan_.lease.kill_after) {
    guard_.line.send({.kind = Order::Kind::kill});
    complain(fmt::format("{} again: killing the command", signal_name(number)));
    return;
  }
  if (stop && !first_stop_signal_)
    first_stop_signal_ = now;
  ending_.typed = ending_.typed || signal.typed;
  guard_.line.send({.kind = Order::Kind::signal, .signal = number});
}

void Keeper::on_news() {
  News news;
  while (phase_ != Phase::releasing) {
    switch (guard_.line.receive(news)) {
      case Line::Status::message:
        on_news(news);
        break;
      case Line::Status::nothing:
        return;
      case Line::Status::closed:
        on_guard_gone();
        return;
    }
  }
}

void Keeper::on_news(const News& news) {
  switch (news.kind) {
    case News::Kind::lent:
      terminal_.lend_to(news.value);
      break;
    case News::Kind::stopping:
      on_stopping(news.cause);
      break;
    case News::Kind::stopped:
      stopped_by_ = news.value;
      break;
    case News::Kind::lingering:
    case News::Kind::killing:
    case News::Kind::surviving:
      break;
    case News::Kind::blind:
    case News::Kind::failed:
      if (phase_ == Phase::taking)
        throw Error{ExitCode::os, describe_failure(news)};
      [[fallthrough]];
    case News::Kind::not_started:
    case News::Kind::too_late:
    case News::Kind::ended:
      if (!told_why_)  // KILL came first
        on_stopping(news.cause);
      ending_.news = news;
      survivors_ = news.survivors.count;
      phase_ = Phase::releasing;
      loop_.unwatch(guard_.line.fd());
      break;
  }
}

void Keeper::on_stopping(Cause cause) {
  told_why_ = true;
  if (cause == Cause::lease) {
    complain(fmt::format("lost {}: it could not be renewed in time; stopping the command", plan_.name.text()));
  } else if (cause == Cause::runtime) {
    complain(
        fmt::format("--max-runtime {} is over; stopping the command", format_duration(*plan_.command.max_runtime)));
  }
}

/// Nobody watches the command any more. The kernel has sent it KILL; what it had started is ours now.
void Keeper::on_guard_gone() {
  loop_.unwatch(guard_.line.fd());
  if (phase_ == Phase::taking)
    throw Error{ExitCode::internal, "the guard process was killed"};
  phase_ = Phase::releasing;
  std::optional<int> unused;
  Tree tree;
  Sweep sweep{tree};
  while (!sweep.go_on(-1, unused) && sweep.lasts() < std::chrono::seconds{10}) ::poll(nullptr, 0, 2);
  survivors_ = sweep.survivors().count;
  complain(ending_.lost
               ? fmt::format("lost {}; the guard process did not stop the command, so it was killed", plan_.name.text())
               : "the guard process was killed; the command was stopped");
}

void Keeper::settle() {
  ending_.stop_when_lost = stops_when_lost();
  ending_.interrupted = first_stop_signal_.has_value();
  result_.verdict = judge(ending_);
  result_.held = since(result_.grant->sent);
  result_.renewals = renewer_->renewals();
  if (ending_.news && ending_.news->kind != News::Kind::ended)
    complain(describe_failure(*ending_.news));
}

std::string Keeper::describe_failure(const News& news) const {
  const char* reason = ::strerror(news.value);
  if (news.kind == News::Kind::blind)
    return "/proc is not that of this PID namespace, so that what the command starts could not be found and killed: "
           "mount it (mount -t proc proc /proc)";
  if (news.kind == News::Kind::failed)
    return fmt::format("cannot make a process for the command: {}", reason);
  if (news.kind == News::Kind::too_late)
    return fmt::format("lost {} before its command was started", plan_.name.text());
  return fmt::format("cannot run {}: {}", plan_.command.argv.front(), reason);
}

void Keeper::release() {
  if (renewer_->state() != Renewer::State::held)
    return;
  if (survivors_ > 0) {
    complain(fmt::format(
        "{} processes of the command could not be killed; {} is left to its lease", survivors_, plan_.name.text()));
    return;
  }
  const Milliseconds timeout = plan_.patience.timeout;
  try {
    const auto outcome = lock::persist(loop_, lock_, timeout, BootClock::now() + timeout, [&](Deadline d) {
      return lock_.release(loop_, plan_.claim, {.status = result_.verdict.command_status}, d);
    });
    if (outcome != lock::Release::lost || result_.verdict.outcome == Outcome::lost)
      return;
    if (lock_.recall(loop_, plan_.claim, BootClock::now() + timeout))
      return;
    result_.verdict.outcome = Outcome::lost;
    complain(fmt::format("{} was not ours any more when the command ended", plan_.name.text()));
  } catch (const Error& error) {
    complain(fmt::format("could not release {}, its lease will run out: {}", plan_.name.text(), error.what()));
  }
}

void Keeper::complain(std::string message) {
  log_->error(message);
  result_.message = std::move(message);
}

}  // namespace rlock::run
