#include "run/keeper.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/escape.h"
#include "run/child.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

using std::chrono::duration_cast;

Milliseconds since(BootClock::time_point start) { return duration_cast<Milliseconds>(BootClock::now() - start); }

int exit_status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

ExitCode exit_code_of_exec(int error_number) {
  if (error_number == ENOENT) return ExitCode::not_found;
  return error_number == EAGAIN || error_number == ENOMEM ? ExitCode::os : ExitCode::not_executable;
}

}  // namespace

Keeper::Keeper(Plan plan, const Log& log, redis::Connection& connection)
    : plan_(std::move(plan)),
      log_(&log),
      signals_({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP}),
      guard_(fork_guard(plan_.command)),
      lock_(connection, plan_.name) {
  adopt_orphans();
  loop_.watch(signals_.fd(), [this] { on_signal(); });
  loop_.watch(guard_.line.fd(), [this] { on_news(); });
}

Result Keeper::run() {
  if (!take_lock()) return result_;
  start_command();
  hold();
  was_lent_ = terminal_.is_lent();
  terminal_.take_back();
  settle_result();
  release();
  while (::waitpid(guard_.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return result_;
}

/// False when somebody else has it.
bool Keeper::take_lock() {
  const auto start = BootClock::now();
  const Milliseconds usable = plan_.lease.usable() - plan_.lease.margin - plan_.lease.kill_after;
  std::optional<lock::Granted> granted;
  if (plan_.inherited) {
    lock::Claim again = plan_.claim;
    again.token = *plan_.inherited;
    granted = lock::Queue{loop_, *log_, lock_, again, plan_.patience}.reenter(usable);
    if (granted) plan_.claim.token = *plan_.inherited;
  }
  if (!granted) {
    auto taken = lock::Queue{loop_, *log_, lock_, plan_.claim, plan_.patience}.take(usable);
    if (const auto* conflict = std::get_if<lock::Conflict>(&taken)) {
      result_.outcome = Outcome::conflict;
      result_.exit_status = static_cast<int>(plan_.conflict);
      result_.message = fmt::format("{} not acquired: {}", plan_.name.text(), conflict->message);
      result_.waited = since(start);
      log_->notice(result_.message);
      return false;
    }
    granted = std::get<lock::Granted>(taken);
  }
  result_.waited = since(start);
  result_.grant = granted;
  lease_.emplace(plan_.lease, granted->sent);
  if (since(granted->sent) > plan_.lease.ttl / 10) {
    log_->notice(fmt::format("{}: the answer took {}; a lease of {} is short for this network", plan_.name.text(),
                             format_duration(since(granted->sent)), format_duration(plan_.lease.ttl)));
  }
  log_->step(fmt::format("holding {}, fence {}", plan_.name.text(), granted->fence.value));
  return true;
}

void Keeper::start_command() {
  phase_ = Phase::running;
  foreground_ = Terminal::is_ours();
  Order start{.kind = Order::Kind::start, .foreground = foreground_};
  if (plan_.on_lost == OnLost::kill) {
    start.term_at = lease_->term_at();
    start.kill_at = lease_->kill_at();
  }
  guard_.line.send(start, environment());
}

void Keeper::hold() {
  Deadline next = lease_->renew_at();
  while (phase_ == Phase::running) {
    if (stopped_by_ != 0) {
      next = suspend();
    } else if (continued_) {
      resume();
    } else if (BootClock::now() < next) {
      loop_.wait(next);
    } else {
      next = renew();
    }
  }
}

/// The command was stopped. If that was job control's doing, the shell wants its prompt: we stop too, and nobody renews
/// until we are continued; the guard watches the deadline meanwhile. Returns when to renew next.
Deadline Keeper::suspend() {
  const int number = std::exchange(stopped_by_, 0);
  const bool job_control = number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
  if (!job_control && !terminal_.is_lent()) return lease_->renew_at();
  const auto left = duration_cast<Milliseconds>(lease_->term_at() - BootClock::now());
  log_->notice(fmt::format("stopped: {} is not renewed until this job continues, in {} it is lost", plan_.name.text(),
                           format_duration(left)));
  terminal_.take_back();
  Terminal::stop_ourselves();
  const Deadline next = renew();
  resume();
  return next;
}

void Keeper::resume() {
  continued_ = false;
  foreground_ = Terminal::is_ours();
  guard_.line.send({.kind = Order::Kind::resume, .foreground = foreground_});
  if (foreground_) terminal_.lend_to(command_pid_);
}

/// One attempt; when to make the next.
Deadline Keeper::renew() {
  const auto sent = BootClock::now();
  const bool must_stop = plan_.on_lost == OnLost::kill;
  if (lost_ || released_by_command_ || (must_stop && sent >= lease_->term_at())) return never;
  const Deadline deadline = sent + plan_.lease.attempt;
  try {
    const auto renewal = lock_.renew(loop_, plan_.claim.token, plan_.lease.ttl,
                                     must_stop ? std::min(deadline, lease_->term_at()) : deadline);
    if (renewal == lock::Renewal::extended) {
      credit(sent);
    } else if (lock_.was_released(loop_, plan_.claim.token, BootClock::now() + plan_.lease.attempt)) {
      released_by_command_ = true;
      log_->step(fmt::format("{} was released by its command", plan_.name.text()));
    } else {
      lose();
    }
  } catch (const Error& error) {
    return renewal_failed(error);
  }
  return lease_->renew_at();
}

void Keeper::credit(BootClock::time_point sent) {
  lease_->extended(sent);
  ++result_.renewals;
  tell_deadlines();
  log_->step(fmt::format("renewed {}", plan_.name.text()));
  if (failing_since_) {
    log_->error(fmt::format("{} is renewed again after {}", plan_.name.text(), format_duration(since(*failing_since_))));
  }
  failing_since_.reset();
  backoff_.reset();
}

Deadline Keeper::renewal_failed(const Error& why) {
  const auto now = BootClock::now();
  if (!failing_since_) {
    failing_since_ = now;
    log_->error(fmt::format("cannot renew {}: {}; lease {} left", plan_.name.text(), why.what(),
                            format_duration(duration_cast<Milliseconds>(lease_->end() - now))));
  }
  return now + backoff_.next();
}

/// Somebody freed it, or took it: another may hold it this very moment.
void Keeper::lose() {
  lost_ = true;
  const bool stops = plan_.on_lost == OnLost::kill;
  result_.message = fmt::format("lost {}: it was released by force, deleted or taken over{}", plan_.name.text(),
                                stops ? "; stopping the command" : "; the command goes on");
  log_->error(result_.message);
  const auto now = BootClock::now();
  if (stops) guard_.line.send({.kind = Order::Kind::stop, .kill_at = std::min(now + plan_.lease.kill_after, lease_->kill_at())});
}

void Keeper::tell_deadlines() const {
  if (plan_.on_lost == OnLost::warn) return;
  guard_.line.send({.kind = Order::Kind::lease, .term_at = lease_->term_at(), .kill_at = lease_->kill_at()});
}

void Keeper::on_signal() {
  while (const auto number = signals_.next()) {
    if (phase_ == Phase::running) pass_on(*number);
    if (phase_ != Phase::taking || interrupted_ || *number == SIGWINCH || *number == SIGCONT) continue;
    if (*number == SIGTSTP) {
      ::raise(SIGSTOP);
      continue;
    }
    interrupted_ = true;  // once: taking it back again must not be interrupted
    throw Error{killed_by(*number), fmt::format("interrupted by {} before {} was acquired", signal_name(*number),
                                                plan_.name.text())};
  }
}

void Keeper::pass_on(int number) {
  if (number == SIGHUP && terminal_.hung_up()) return;  // the kernel has told the command itself
  if (number == SIGCONT) {
    continued_ = true;
    return;
  }
  const auto now = BootClock::now();
  if (number == SIGTERM || number == SIGINT) {
    if (first_stop_signal_ && now >= *first_stop_signal_ + plan_.lease.kill_after) {
      log_->error(fmt::format("{} again: killing the command", signal_name(number)));
      guard_.line.send({.kind = Order::Kind::kill});
      return;
    }
    if (!first_stop_signal_) first_stop_signal_ = now;
  }
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
    case News::Kind::started:
      command_pid_ = news.value;
      if (foreground_) terminal_.lend_to(command_pid_);
      log_->step(fmt::format("started {} as pid {}", plan_.command.argv.front(), news.value));
      break;
    case News::Kind::stopping:
      on_stopping(news.cause);
      break;
    case News::Kind::stopped:
      stopped_by_ = news.value;
      break;
    case News::Kind::failed:
      if (phase_ == Phase::taking) throw os_error("the guard process could not start", news.value);
      [[fallthrough]];
    case News::Kind::not_started:
    case News::Kind::ended:
      last_news_ = news;
      phase_ = Phase::releasing;
      loop_.unwatch(guard_.line.fd());
      break;
  }
}

void Keeper::on_stopping(Cause cause) {
  if (cause == Cause::lease) {
    result_.message = fmt::format("lost {}: it could not be renewed in time; stopping the command", plan_.name.text());
    log_->error(result_.message);
  } else if (cause == Cause::runtime) {
    result_.message = fmt::format("stopping the command: --max-runtime {} is over",
                                  format_duration(*plan_.command.max_runtime));
    log_->error(result_.message);
  }
}

/// Nobody watches the command any more; it was sent KILL by the kernel, and what it had started is ours now.
void Keeper::on_guard_gone() {
  loop_.unwatch(guard_.line.fd());
  if (phase_ == Phase::taking) throw Error{ExitCode::internal, "the guard process was killed"};
  phase_ = Phase::releasing;
  std::optional<int> unused;
  survivors_ = static_cast<int>(kill_descendants(-1, unused, BootClock::now() + longest_kill).size());
  result_.message = "the guard process was killed; the command was stopped";
  log_->error(result_.message);
}

void Keeper::settle_result() {
  result_.held = since(result_.grant->sent);
  if (!last_news_) return;  // killed guard: an internal error, as it stands
  survivors_ = last_news_->survivors;
  if (last_news_->kind == News::Kind::not_started) {
    result_.exit_status = static_cast<int>(exit_code_of_exec(last_news_->value));
    result_.message = fmt::format("cannot run {}: {}", plan_.command.argv.front(), ::strerror(last_news_->value));
    log_->error(result_.message);
  } else if (last_news_->kind == News::Kind::failed) {
    result_.exit_status = static_cast<int>(ExitCode::os);
    result_.message = fmt::format("cannot start a process for the command: {}", ::strerror(last_news_->value));
    log_->error(result_.message);
  } else {
    settle_ended(last_news_->value, last_news_->cause);
  }
}

void Keeper::settle_ended(int wait_status, Cause cause) {
  result_.wait_status = wait_status;
  result_.exit_status = exit_status_of(wait_status);
  result_.outcome = Outcome::completed;
  if (lost_ || cause == Cause::lease) {
    result_.outcome = Outcome::lost;
    if (plan_.on_lost == OnLost::kill) result_.exit_status = static_cast<int>(ExitCode::lost);
  } else if (cause == Cause::runtime) {
    result_.outcome = Outcome::timeout;
    result_.exit_status = static_cast<int>(ExitCode::timeout);
  } else if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    if (first_stop_signal_) result_.outcome = Outcome::interrupted;
    // Not passed on by us, so it came from the terminal that the command had.
    if (was_lent_ && !first_stop_signal_ && (number == SIGINT || number == SIGQUIT)) result_.die_of = number;
  }
}

void Keeper::release() {
  if (lost_ || released_by_command_) return;
  if (survivors_ > 0) {
    log_->error(fmt::format("{} processes of the command could not be killed; {} is left to its lease", survivors_,
                            plan_.name.text()));
    return;
  }
  try {
    const Milliseconds timeout = plan_.patience.timeout;
    const std::optional<int> status = result_.wait_status ? std::optional{exit_status_of(*result_.wait_status)}
                                                          : std::nullopt;
    const auto answer = lock::persist(loop_, lock_.connection(), timeout, BootClock::now() + timeout, [&](Deadline d) {
      return lock_.release(loop_, plan_.claim, status, d);
    });
    if (answer.outcome != lock::Release::lost) return;
    if (lock_.was_released(loop_, plan_.claim.token, BootClock::now() + timeout)) return;
    if (result_.outcome == Outcome::lost) return;
    result_.outcome = Outcome::lost;
    result_.message = fmt::format("{} was not ours any more when the command ended", plan_.name.text());
    log_->error(result_.message);
  } catch (const Error& error) {
    log_->error(fmt::format("could not release {}, its lease will run out: {}", plan_.name.text(), error.what()));
  }
}

std::string Keeper::environment() const {
  const std::string& token = plan_.claim.token.text();
  const std::string held = fmt::format("{}{}{}={}", plan_.held_around, plan_.held_around.empty() ? "" : " ",
                                       percent_encode(plan_.name.text()), token);
  std::string out;
  const auto add = [&out](std::string_view name, std::string_view value) {
    out += fmt::format("{}={}", name, value);
    out += '\0';
  };
  add("RLOCK_KEY", plan_.name.text());
  add("RLOCK_TOKEN", token);
  add("RLOCK_FENCE", std::to_string(result_.grant->fence.value));
  add("RLOCK_TTL_MS", std::to_string(plan_.lease.ttl.count()));
  if (plan_.claim.capacity.value > 1) add("RLOCK_SLOT", std::to_string(result_.grant->slot));
  add("RLOCK_HELD", held);
  return out;
}

}  // namespace rlock::run
