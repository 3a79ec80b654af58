#include "run/guard.h"

#include <poll.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"
#include "run/child.h"
#include "run/environment.h"
#include "run/scheduling.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

void block_all_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

Guard::Guard(Command command, const Line& keeper)
    : command_(std::move(command)),
      keeper_(&keeper),
      signals_({SIGCHLD}),
      timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!timer_)
    throw os_error("timerfd_create", errno);
  adopt_orphans();
}

void Guard::run() {
  // One look before there is anything to see: it brings in the pages that the first order would have to wait for.
  look_at_clock();
  take_orders();
  while (state_ != State::gone) {
    std::array<pollfd, 3> fds{{{keeper_->fd(), POLLIN, 0}, {timer_.get(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR)
      kill_tree();
    // The clock before anything else: after a suspend the deadline may be long past.
    look_at_clock();
    if (fds[2].revents != 0)
      look_at_children();
    if (fds[0].revents != 0)
      take_orders();
  }
  give_way();
  keeper_->await_end();  // who goes first: nobody waits for our end
}

Deadline Guard::next_deadline() const {
  if (state_ == State::running)
    return std::min({term_at_, kill_at_, runtime_end_});
  return state_ == State::stopping ? kill_at_ : never;
}

void Guard::set_timer() const {
  itimerspec at{};
  const Deadline next = next_deadline();
  if (next != never) {
    const auto since_boot = std::max(next.time_since_epoch(), BootClock::duration{1});  // zero would disarm it
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
    at.it_value.tv_sec = static_cast<time_t>(seconds.count());
    at.it_value.tv_nsec = static_cast<long>((since_boot - seconds).count());
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void Guard::look_at_clock() {
  const auto now = BootClock::now();
  if (now < next_deadline())
    return;
  if (now >= kill_at_) {
    if (cause_ == Cause::none)
      cause_ = Cause::lease;
    kill_tree();
  } else if (now >= term_at_) {
    begin_stop(Cause::lease, kill_at_);
  } else {
    begin_stop(Cause::runtime, std::min(kill_at_, now + command_.kill_after));
  }
}

void Guard::take_orders() {
  Order order;
  std::string environment;
  while (state_ != State::gone) {
    switch (keeper_->receive(order, environment)) {
      case Line::Status::message:
        obey(order, environment);
        break;
      case Line::Status::nothing:
        return;
      case Line::Status::closed:  // nobody is left to renew
        kill_tree();
        return;
    }
  }
}

void Guard::obey(const Order& order, const std::string& environment) {
  switch (order.kind) {
    case Order::Kind::start:
      start(order, environment);
      break;
    case Order::Kind::lease:
      if (state_ != State::running)
        break;
      term_at_ = order.term_at;
      kill_at_ = order.kill_at;
      set_timer();
      break;
    case Order::Kind::signal:
      signal_group(order.signal);
      break;
    case Order::Kind::stop:
      begin_stop(Cause::ordered, order.kill_at);
      break;
    case Order::Kind::kill:
      cause_ = cause_ == Cause::none ? Cause::ordered : cause_;
      kill_tree();
      break;
    case Order::Kind::resume:
      resume(order.foreground);
      break;
  }
}

void Guard::start(const Order& order, const std::string& environment) {
  term_at_ = order.term_at;
  kill_at_ = order.kill_at;
  if (BootClock::now() >= term_at_) {  // one of us, or the machine, was stopped meanwhile
    keeper_->send(News{.kind = News::Kind::too_late});
    state_ = State::gone;
    return;
  }
  const Child child = start_child(command_.argv,
                                  merge_environment(std::move(command_.environment), environment),
                                  {.foreground = order.foreground, .ignore_sigchld = command_.ignore_sigchld});
  if (child.pid < 0) {
    keeper_->send(child.exec_error != 0 ? News{.kind = News::Kind::not_started, .value = child.exec_error}
                                        : News{.kind = News::Kind::failed, .value = child.fork_error});
    state_ = State::gone;
    return;
  }
  leader_ = child.pid;
  state_ = State::running;
  if (command_.max_runtime)
    runtime_end_ = BootClock::now() + *command_.max_runtime;
  set_timer();
  if (order.foreground)
    keeper_->send(News{.kind = News::Kind::lent, .value = leader_});
}

void Guard::look_at_children() {
  signals_.next();  // SIGCHLD: there is no more than one at a time
  if (state_ == State::gone)
    return;
  report_stopped_child();
  const Reaped reaped = reap(leader_);
  if (reaped.leader_status)
    leader_status_ = reaped.leader_status;
  // What a command that ended by itself has left running, it left running on purpose.
  if (state_ == State::running && leader_status_)
    finish(0);
  // One that was told to stop must leave nobody behind.
  if (state_ == State::stopping && !reaped.any_left)
    finish(0);
}

void Guard::report_stopped_child() {
  if (leader_ < 0 || leader_status_)
    return;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(leader_), &info, WSTOPPED | WNOHANG) < 0 || info.si_pid == 0)
    return;
  keeper_->send(News{.kind = News::Kind::stopped, .value = info.si_status});
}

void Guard::begin_stop(Cause cause, Deadline kill_at) {
  if (state_ != State::running && state_ != State::stopping)
    return;
  kill_at_ = std::min(kill_at_, kill_at);
  if (state_ == State::running) {
    state_ = State::stopping;
    cause_ = cause;
    signal_group(command_.first_signal);
    signal_group(SIGCONT);  // a stopped process acts on the first signal only when it continues
    keeper_->send(News{.kind = News::Kind::stopping, .cause = cause});
  }
  set_timer();
}

void Guard::kill_tree() {
  if (state_ == State::gone)
    return;
  int survivors = 0;
  if (leader_ > 0) {
    signal_group(SIGKILL);  // reaches most of them at once
    const auto left = kill_descendants(leader_, leader_status_, BootClock::now() + longest_kill);
    survivors = static_cast<int>(left.size());
  }
  finish(survivors);
}

void Guard::finish(int survivors) {
  state_ = State::gone;
  keeper_->send(News{
      .kind = News::Kind::ended, .value = leader_status_.value_or(SIGKILL), .cause = cause_, .survivors = survivors});
}

/// Only while the leader is not reaped: afterwards its number may be another's.
void Guard::signal_group(int number) const {
  if (leader_ > 0 && !leader_status_)
    ::kill(-leader_, number);
}

void Guard::resume(bool foreground) const {
  if (foreground && leader_ > 0 && ::tcsetpgrp(STDIN_FILENO, leader_) == 0)
    keeper_->send(News{.kind = News::Kind::lent, .value = leader_});
  signal_group(SIGCONT);
}

GuardProcess fork_guard(const Command& command) {
  auto [keeper_end, guard_end] = Line::make();
  const pid_t pid = ::fork();
  if (pid < 0)
    throw os_error("cannot start the guard process", errno);
  if (pid > 0)
    return {.pid = pid, .line = std::move(keeper_end)};
  keeper_end.close();
  block_all_signals();
  try {
    Guard{command, guard_end}.run();
  } catch (const std::exception&) {
    guard_end.send(News{.kind = News::Kind::failed, .value = errno});
  }
  ::_exit(0);
}

}  // namespace rlock::run
