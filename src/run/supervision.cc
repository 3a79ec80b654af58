#include "run/supervision.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "run/process.h"
#include "run/process_table.h"
#include "run/tree.h"
#include "run/wording.h"

namespace rlock::run {
namespace {

/// How long the guard may take to report on a busy machine.
constexpr std::chrono::seconds usual_answer{1};
constexpr Milliseconds one_sending{250};  // timeout(1) sends its signal to us, and to the group that we are in

/// How long it may take to start the command on a machine that hardly gets on.
constexpr std::chrono::seconds longest_start{10};

/// How often to check whether the guard has overlooked the command's end, and whether it still kills.
constexpr std::chrono::seconds check_interval{3};
constexpr Milliseconds kill_check_interval{20};

/// Who looks so much later than at the time that was due was stopped, or suspended with the machine.
constexpr Milliseconds worst_delay{500};

}  // namespace

Supervision::Supervision(Loop& loop, const Log& log, const Plan& plan, Complaints& complaints)
    : loop_(&loop),
      log_(&log),
      plan_(&plan),
      complaints_(&complaints),
      guard_(fork_guard(plan.command, plan.name.text())),
      jobs_(guard_.line) {
  adopt_orphans();
  loop_->watch(guard_.line.fd(), [this] { on_news(); });
}

Supervision::~Supervision() {
  if (state_ == State::guarded)
    take_over_.begin();
  if (state_ == State::guarded || state_ == State::killing)
    take_over_.finish_without_memory();
}

void Supervision::start(Order order, const std::string& environment) {
  state_ = State::guarded;
  order.kind = Order::Kind::start;
  order.foreground = jobs_.may_lend();
  order.modes = jobs_.modes();
  start_due_ = BootClock::now() + longest_start;
  next_check_ = BootClock::now() + check_interval;
  if (!guard_.line.send(order, environment)) {
    const int reason = errno;
    ::kill(guard_.pid, SIGKILL);
    throw os_error("cannot tell the guard process to start the command", reason);
  }
}

void Supervision::stop(Deadline kill_at, Milliseconds tolerance) {
  guard_.line.send({.kind = Order::Kind::stop, .kill_at = kill_at});
  answer_due_ = std::min(answer_due_, kill_at + tolerance);
}

void Supervision::pass_on(Signal signal) {
  const int number = signal.number;
  const auto now = BootClock::now();
  const bool stop = number == SIGTERM || number == SIGINT;
  if (stop && first_stop_signal_ && now >= first_stop_signal_->at + plan_->lease.kill_after) {
    guard_.line.send({.kind = Order::Kind::kill});
    expect_within(usual_answer);
    complaints_->add(fmt::format("{}: {} again: killing the command", plan_->name.text(), signal_name(number)));
    return;
  }
  if (!guard_.line.send({.kind = Order::Kind::signal, .signal = number}))
    complaints_->add(fmt::format("cannot pass on {}: {}", signal_name(number), ::strerror(errno)));
  if (stop)
    note_stop_signal(signal, now);
  if (number == SIGTSTP && is_lingering())
    jobs_.command_stopped(number);  // the guard reports that only of the command's first process
  if (tells_to_stop(number))
    told_to_stop_at_ = now;
  evidence_.interrupted = first_stop_signal_.has_value();
  evidence_.passed_on = number;
  // The terminal also sends WINCH when its window is resized, and that ends nothing.
  evidence_.typed = evidence_.typed || (signal.typed && (number == SIGINT || number == SIGQUIT));
}

/// Says when another such signal will kill the command. At a terminal the first Ctrl-C needs no words.
void Supervision::note_stop_signal(Signal signal, BootClock::time_point now) {
  const std::string& lock = plan_->name.text();
  const std::string name = signal_name(signal.number);
  const Milliseconds wait = plan_->lease.kill_after;
  if (first_stop_signal_) {
    if (signal.number == first_stop_signal_->number && now < first_stop_signal_->at + one_sending)
      return;
    const auto left = std::chrono::ceil<Milliseconds>(first_stop_signal_->at + wait - now);
    log_->notice(fmt::format(
        "{}: {} again, too early to kill the command: send it once more in {}", lock, name, format_duration(left)));
    return;
  }
  first_stop_signal_ = {.number = signal.number, .at = now};
  if (!signal.typed)
    log_->notice(fmt::format(
        "{}: {} is passed on to the command; another one after {} kills it", lock, name, format_duration(wait)));
}

/// A guard whose survivors do not die is not late, since nothing more can be done about them. Nor is one late for the
/// lease that has begun to kill and goes on: in a large tree, to begin anew would only take longer.
Deadline Supervision::due(Deadline overdue) const {
  if (survivors_)
    return never;
  return guard_kills_ ? answer_due_ : std::min({answer_due_, start_due_, overdue});
}

Deadline Supervision::next(Deadline overdue) const {
  if (state_ == State::killing)
    return take_over_.next();
  return state_ == State::guarded ? std::min(due(overdue), next_check_) : never;
}

void Supervision::look(Deadline overdue) {
  const auto now = BootClock::now();
  if (state_ == State::killing && now >= take_over_.next()) {
    kill_round();
  } else if (state_ == State::guarded && now >= due(overdue)) {
    const bool overslept = now < overdue && now >= due(overdue) + worst_delay;
    on_news();  // perhaps the guard reported in time and we were the ones who were late
    if (state_ != State::guarded || now < due(overdue))
      return;
    if (overslept)
      give_guard_time();
    else
      take_over(now >= overdue ? Failing::lease : leader_ == 0 ? Failing::start : Failing::order);
  } else if (state_ == State::guarded && now >= next_check_) {
    check_guard(now >= overdue);
  }
}

/// What has stopped us for a while may have stopped the guard too, which must not cost the command its first signal.
void Supervision::give_guard_time() {
  const Deadline later = BootClock::now() + usual_answer;
  answer_due_ = std::max(answer_due_, later);
  start_due_ = std::max(start_due_, later);
}

/// A guard that is stopped while the lease ends kills nobody, whatever it has begun, and sees no end of survivors.
void Supervision::check_guard(bool is_lease_over) {
  const bool is_needed = survivors_ || (guard_kills_ && is_lease_over);
  if (is_needed && is_guard_stopped()) {
    on_news();
    if (state_ == State::guarded)
      take_over(survivors_ ? Failing::end : Failing::lease);
  } else if (guard_kills_ && !survivors_) {
    next_check_ = BootClock::now() + kill_check_interval;
  } else {
    look_for_overlooked_end();
  }
}

bool Supervision::is_guard_stopped() const { return look_at_child(guard_.pid, WSTOPPED | WNOWAIT).has_value(); }

/// The guard reaps at once what has ended. One that is stopped does not, and the lock would be renewed for ever. So a
/// process that has not been reaped for as long as an answer may take makes us take over. Only the command itself stays
/// unreaped until all others have ended, and then the guard has said that it waits for them. Nor can it reap what a
/// debugger holds.
void Supervision::look_for_overlooked_end() {
  next_check_ = BootClock::now() + check_interval;
  pid_t ended = 0;
  try {
    const ProcessTable processes;
    for (const pid_t child : processes.children_of(guard_.pid)) {
      if (ended == 0 && (child != leader_ || !is_ending_) && processes.is_dead(child) && !processes.is_traced(child))
        ended = child;
    }
  } catch (const Error&) {
    return;  // without descriptors, say: the next check may see more
  }
  if (ended == 0 || survivors_) {
    overlooked_ = 0;
  } else if (std::exchange(overlooked_, ended) != ended) {
    next_check_ = BootClock::now() + usual_answer;
  } else {
    on_news();
    if (state_ == State::guarded)
      take_over(Failing::end);
  }
}

void Supervision::on_news() {
  News news;
  while (state_ == State::waiting || state_ == State::guarded) {
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

void Supervision::on_news(const News& news) {
  switch (news.kind) {
    case News::Kind::started:
      leader_ = news.value;
      start_due_ = never;
      if (const auto limit = plan_->command.max_runtime)
        answer_due_ = std::min(answer_due_, BootClock::now() + *limit + usual_answer);
      take_over_.started(leader_);
      break;
    case News::Kind::lent:
      jobs_.command_got_terminal(news.value);
      break;
    case News::Kind::stopped:
      jobs_.command_stopped(news.value);
      break;
    case News::Kind::lingering:
      is_ending_ = true;
      on_lingering();
      break;
    case News::Kind::stopping:
      log_->step([this, cause = news.cause] { return describe_stop(cause, *plan_); });
      is_ending_ = true;
      on_stopping(news.cause);
      break;
    case News::Kind::killing:
      log_->step("killing what is left of the command");
      on_killing(news.cause);
      break;
    case News::Kind::surviving:
      survivors_ = news.survivors;
      evidence_.news = news;  // what the report says if we stop waiting for the survivors
      evidence_.news->kind = News::Kind::ended;
      break;
    case News::Kind::silent:
    case News::Kind::blind:
    case News::Kind::failed:
    case News::Kind::not_started:
    case News::Kind::too_late:
    case News::Kind::ended:
      on_end(news);
      break;
  }
}

/// With --at-end wait the terminal comes back to us, so that Ctrl-C reaches rlock.
void Supervision::on_lingering() {
  jobs_.take_back_terminal();
  log_->notice(fmt::format("{}: the command has ended; waiting for what it left running", plan_->name.text()));
}

void Supervision::on_stopping(Cause cause) {
  expect_within(plan_->lease.kill_after + usual_answer);
  tell_why(cause);
}

void Supervision::tell_why(Cause cause) {
  told_why_ = true;
  const std::string& name = plan_->name.text();
  if (cause == Cause::lease) {
    complaints_->add(fmt::format("lost {}: it could not be renewed in time; stopping the command", name));
  } else if (cause == Cause::runtime) {
    complaints_->add(fmt::format(
        "{}: --max-runtime {} is over; stopping the command", name, format_duration(*plan_->command.max_runtime)));
  }
}

void Supervision::on_killing(Cause cause) {
  guard_kills_ = is_ending_ = true;
  expect_within(Sweep::usual + usual_answer);
  next_check_ = BootClock::now() + kill_check_interval;
  if (cause == Cause::signalled || cause == Cause::at_end)
    complaints_->add(fmt::format("{}: what the command left running did not end within {}; killing it",
                                 plan_->name.text(),
                                 format_duration(plan_->lease.kill_after)));
}

void Supervision::on_end(const News& news) {
  if (state_ == State::waiting)
    throw Error{ExitCode::os, describe_failure(news, *plan_)};
  if (!told_why_)  // the command was killed without a first signal, so nothing has been printed yet
    tell_why(news.cause);
  evidence_.news = news;
  evidence_.interrupted = evidence_.interrupted || was_just_told(news.at);
  survivors_.reset();
  if (news.survivors.count > 0)
    survivors_ = news.survivors;
  state_ = State::over;
  loop_->unwatch(guard_.line.fd());
}

/// A HUP that the command has outlived, and then all that it left, made it read its configuration again.
bool Supervision::was_just_told(BootClock::time_point ended_at) const {
  return told_to_stop_at_ && ended_at < *told_to_stop_at_ + 2 * plan_->lease.kill_after + usual_answer;
}

/// The kernel has sent KILL to the command, its parent being dead. What the command had started is now below us.
void Supervision::on_guard_gone() {
  if (state_ == State::waiting)
    throw Error{ExitCode::internal, "the guard process was killed"};
  take_over(Failing::life);
}

/// For a guard that is dead, stopped or frozen, or hangs. The kill comes first: to print a line, and to make one, takes
/// time, and memory.
void Supervision::take_over(Failing failing) {
  const bool is_runtime = plan_->command.max_runtime && !first_stop_signal_;
  if (failing == Failing::lease)
    evidence_.loss = Outcome::lost;
  if (failing == Failing::start)
    evidence_.news = News{.kind = News::Kind::silent};
  if (failing == Failing::order)
    evidence_.news =
        News{.kind = News::Kind::ended, .value = SIGKILL, .cause = is_runtime ? Cause::runtime : Cause::ordered};
  state_ = State::killing;
  failing_ = failing;
  has_taken_over_ = true;
  take_over_.begin();
  kill_round();
  loop_->unwatch(guard_.line.fd());
}

void Supervision::kill_round() {
  if (take_over_.go_on()) {
    survivors_.reset();
    state_ = State::over;
  } else if (const auto survivors = take_over_.report()) {
    survivors_ = survivors;
  } else {
    return;
  }
  explain_take_over();
}

void Supervision::explain_take_over() {
  const std::string& name = plan_->name.text();
  switch (std::exchange(failing_, Failing::none)) {
    case Failing::none:
      return;
    case Failing::life:
      complaints_->add(fmt::format("{}: the guard process was killed, and the command with it", name));
      return;
    case Failing::lease:
      complaints_->add(fmt::format("lost {}; the guard process did not stop the command, so it was killed", name));
      return;
    case Failing::start:  // the keeper says so, as of all that keeps the command from being started
      return;
    case Failing::end:
      complaints_->add(fmt::format("{}: the command had ended, but the guard process did not say how", name));
      return;
    case Failing::order:
      complaints_->add(fmt::format("{}: the guard process did not answer; the command was killed without it", name));
      return;
  }
}

void Supervision::abandon() {
  guard_.line.send({.kind = Order::Kind::abandon});
  state_ = State::over;
}

/// Does not wait for a guard that hangs, or that still watches survivors: it ends when it can.
void Supervision::reap_guard() const {
  if (has_reaped_guard() || has_taken_over_ || survivors_)
    return;
  const Fd guard = open_pidfd(guard_.pid);
  pollfd end{guard.get(), POLLIN, 0};
  const auto has_ended = [&] { return ::poll(&end, 1, static_cast<int>(Milliseconds{usual_answer}.count())) != 0; };
  if (guard && !has_ended()) {
    ::kill(guard_.pid, SIGKILL);  // it is stopped, say, and has nothing left to do
    has_ended();
  }
  has_reaped_guard();
}

bool Supervision::has_reaped_guard() const { return ::waitpid(guard_.pid, nullptr, WNOHANG) != 0; }

}  // namespace rlock::run
