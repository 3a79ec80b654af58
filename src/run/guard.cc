#include "run/guard.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "run/child.h"
#include "run/command_group.h"
#include "run/process.h"
#include "run/scheduling.h"
#include "run/sweep.h"
#include "run/terminal.h"
#include "run/timetable.h"
#include "run/tree.h"
#include "run/wording.h"

namespace rlock::run {
namespace {

/// Preparing the kill is worth its cost only for a command that runs at least this long.
constexpr Milliseconds preparation_after{50};
constexpr Milliseconds longest_rehearsal{100};

/// Killing thousands of processes on a busy machine takes longer than the margin. It also takes longer than a look at
/// them, since each must run once more to stop.
constexpr int looks_per_kill = 4;

class Guard {
 public:
  /// Runs in the process that fork_guard() makes. The line must outlive the guard. Throws Error{os}.
  Guard(Command command, std::string lock, const Line& keeper, pid_t keepers_group);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Ends this process when the guard has done its work and the keeper has closed the line or is gone.
  [[noreturn]] void run();

 private:
  enum class State { waiting, running, lingering, stopping, killing, gone };

  void watch();
  void kill_without_memory();

  void look_at_clock();
  bool is_due() const { return timetable_.due(BootClock::now()) != Timetable::Duty::none; }
  bool take_order();
  void obey(const Order& order, const std::string& environment);
  void start(const Order& order, const std::string& environment);
  void extend(const Order& order);
  void prepare();
  void pass_on(int number);
  void resume(const Order& order);
  void lent(const Order& order);
  void return_terminal();

  void look_at_children();
  bool is_over();
  bool was_told_to_stop() const;
  bool may_leave_the_rest() const;
  void deal_with_the_rest();

  void begin_stop(Cause cause, Deadline kill_at);
  void allow_for_size();
  void send_first_signal();
  bool is_group_ending() const;
  void begin_kill(Cause cause = Cause::none);
  void kill_round();
  void tell_of_keeper();
  void finish(const News& last_word);
  void finish(const Survivors& survivors = {});
  News end_of_command(News::Kind kind, const Survivors& survivors) const;

  bool has_command() const { return state_ == State::running || state_ == State::lingering; }
  void set_timer();

  Command command_;
  std::string lock_;
  Child child_{command_};
  const Line* keeper_;
  pid_t keepers_group_;
  bool keeper_is_gone_ = false;
  bool is_abandoned_ = false;  // the keeper has gone on purpose, and left survivors to us
  Signals signals_;
  BootTimer timer_;
  Tree tree_;
  CommandGroup group_{tree_};
  Sweep sweep_{tree_};
  State state_ = State::waiting;
  bool has_lent_terminal_ = false;
  std::optional<TerminalModes> modes_;                    // the terminal's before that
  std::optional<BootClock::time_point> told_to_stop_at_;  // when we passed on such a signal
  Cause cause_ = Cause::none;
  Timetable timetable_;
};

Guard::Guard(Command command, std::string lock, const Line& keeper, pid_t keepers_group)
    : command_(std::move(command)),
      lock_(std::move(lock)),
      keeper_(&keeper),
      keepers_group_(keepers_group),
      signals_({SIGCHLD}) {
  adopt_orphans();
}

void Guard::run() {
  errno = 0;
  if (tree_.is_visible()) {
    try {
      watch();
    } catch (const std::exception&) {
      kill_without_memory();
    }
  } else if (errno == EMFILE || errno == ENFILE) {
    finish(News{.kind = News::Kind::failed, .value = errno});
  } else {
    finish(News{.kind = News::Kind::blind});
  }
  if (keeper_is_gone_) {
    return_terminal();  // once more: a process that was not killed yet may have taken it again
    if (!is_abandoned_ && group_.was_started())
      tell_of_keeper();
  }
  give_way();
  keeper_->await_end();  // our exit must not compete with the keeper's, which the user waits for
  return_terminal();     // for a keeper that was killed only now
  ::_exit(0);
}

void Guard::watch() {
  become_punctual();  // before the command is there, which may have a real-time priority and never sleep
  // This runs the code that handles an order once, so that its pages are in memory when the first order comes.
  look_at_clock();
  take_order();
  while (state_ != State::gone) {
    const int keeper = keeper_is_gone_ ? -1 : keeper_->fd();
    std::array<pollfd, 3> fds{{{keeper, POLLIN, 0}, {timer_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR)
      begin_kill();
    // The clock comes first: after a suspend the deadline may be long past. What has been said before it counts, since
    // a guard that was stopped finds the renewals of that time in its queue.
    while (state_ != State::gone && is_due() && take_order()) continue;
    look_at_clock();
    if (fds[2].revents != 0)
      look_at_children();
    if (fds[0].revents != 0 && state_ != State::gone)
      take_order();
  }
}

/// The last resort when watching has failed unexpectedly, for example for lack of memory: nobody can watch the command
/// any longer, so it is killed.
void Guard::kill_without_memory() {
  if (group_.was_started()) {
    const bool over = Sweep::sweep_without_memory(tree_, group_);
    finish(Survivors{.count = over ? 0 : 1});
  } else {
    finish(News{.kind = News::Kind::failed, .value = ENOMEM});
  }
}

void Guard::set_timer() {
  const Deadline next = std::min(timetable_.next(), group_.look_again_at());
  timer_.set(state_ == State::killing ? sweep_.next() : next);
}

void Guard::look_at_clock() {
  const auto now = BootClock::now();
  if (state_ == State::killing) {
    if (now >= sweep_.next())
      kill_round();
    return;
  }
  switch (timetable_.due(now)) {
    case Timetable::Duty::none:
      if (now >= group_.look_again_at())
        look_at_children();
      return;
    case Timetable::Duty::prepare:
      return prepare();
    case Timetable::Duty::stop_for_runtime:
      return begin_stop(Cause::runtime, now + command_.kill_after);
    case Timetable::Duty::stop_for_lease:
      return begin_stop(Cause::lease, timetable_.kill_at());
    case Timetable::Duty::kill:
      return begin_kill(Cause::lease);
  }
}

/// Returns whether there was one.
bool Guard::take_order() {
  Order order;
  std::string environment;
  const Line::Status status = keeper_->receive(order, environment);
  if (status == Line::Status::message)
    obey(order, environment);
  if (status == Line::Status::closed) {  // nobody renews the lease any more
    keeper_is_gone_ = true;
    return_terminal();
    begin_kill();
  }
  return status == Line::Status::message;
}

void Guard::obey(const Order& order, const std::string& environment) {
  switch (order.kind) {
    case Order::Kind::start:
      return start(order, environment);
    case Order::Kind::lease:
      return extend(order);
    case Order::Kind::signal:
      return pass_on(order.signal);
    case Order::Kind::stop:
      return begin_stop(Cause::ordered, order.kill_at);
    case Order::Kind::kill:
      return begin_kill(Cause::ordered);
    case Order::Kind::resume:
      return resume(order);
    case Order::Kind::abandon:
      is_abandoned_ = true;
      has_lent_terminal_ = false;  // the keeper has taken it back
  }
}

void Guard::start(const Order& order, const std::string& environment) {
  const auto now = BootClock::now();
  if (now >= order.term_at) {  // the keeper, the guard or the whole machine was stopped meanwhile
    finish(News{.kind = News::Kind::too_late});
    return;
  }
  const pid_t child = child_.start(environment, order.foreground);
  if (child < 0) {
    finish(News{.kind = News::Kind::failed, .value = errno});
    return;
  }
  group_.started(child, order.foreground);
  state_ = State::running;
  timetable_.set_lease(order.term_at, order.kill_at);
  timetable_.begin(now + preparation_after, command_.max_runtime ? now + *command_.max_runtime : never);
  set_timer();
  keeper_->send(News{.kind = News::Kind::started, .value = child});
  if (order.foreground)
    lent(order);
}

void Guard::extend(const Order& order) {
  if (!has_command() && state_ != State::stopping)
    return;
  timetable_.set_lease(order.term_at, order.kill_at);
  set_timer();
}

/// A kill must not wait for pages to be read from disk: a rehearsal brings them in, and they are kept.
void Guard::prepare() {
  timetable_.prepared();
  tree_.rehearse(BootClock::now() + longest_rehearsal);
  keep_pages();
  set_timer();
}

void Guard::pass_on(int number) {
  group_.pass_on(number);
  if (!tells_to_stop(number))
    return;
  told_to_stop_at_ = BootClock::now();
  if (state_ == State::lingering)
    begin_stop(Cause::signalled, BootClock::now() + command_.kill_after);
}

void Guard::resume(const Order& order) {
  if (order.foreground && group_.take_terminal())
    lent(order);
  group_.signal(SIGCONT);
}

void Guard::lent(const Order& order) {
  keeper_->send(News{.kind = News::Kind::lent, .value = group_.id()});
  has_lent_terminal_ = true;
  modes_ = order.modes;
}

/// The script that called rlock goes on as soon as the keeper is dead, and may want to read at once: this comes before
/// the kill, which takes longer. Does nothing where the keeper has taken it back.
void Guard::return_terminal() {
  if (has_lent_terminal_)
    terminal::take_back_from(group_.id(), keepers_group_, modes_);
}

void Guard::look_at_children() {
  signals_.next();  // one read suffices, since SIGCHLD is never queued twice
  if (state_ == State::gone || state_ == State::waiting)
    return;
  group_.look_at_leader();
  if (group_.has_ended() && child_.exec_error() != 0) {
    finish(News{.kind = News::Kind::not_started, .value = child_.exec_error()});
  } else if ((state_ == State::running && may_leave_the_rest()) || is_over()) {
    finish();
  } else if (state_ == State::running && group_.has_ended()) {
    if (group_.has_dismissed_lookout())
      deal_with_the_rest();
  } else if (state_ != State::killing) {  // the killing itself stops processes, which is no news
    if (const auto number = group_.stopped_by())
      keeper_->send(News{.kind = News::Kind::stopped, .value = *number});
    set_timer();
  }
}

/// Reaps the children that have ended. Returns whether nobody is left. That costs a look at everybody, which can be
/// saved while the command's first process is there.
bool Guard::is_over() {
  if (state_ == State::killing) {
    const bool is_over = sweep_.is_over(group_);
    set_timer();
    return is_over;
  }
  if (group_.has_ended())
    return group_.is_over();
  tree_.reap_ended();
  return false;
}

/// A service manager that stops a unit signals every process of it: us, who are older, before the command, which may
/// then end before our keeper has passed on anything.
bool Guard::was_told_to_stop() const {
  return group_.died_of_signal() || told_to_stop_at_ || group_.was_told_by_terminal() ||
         is_any_pending({SIGTERM, SIGINT, SIGQUIT});
}

/// A command that exited by itself has left processes behind on purpose.
bool Guard::may_leave_the_rest() const {
  return group_.has_ended() && !was_told_to_stop() && command_.at_end == AtEnd::leave;
}

/// The command has ended, and others have not.
void Guard::deal_with_the_rest() {
  const Deadline kill_at = BootClock::now() + command_.kill_after;
  if (was_told_to_stop()) {
    begin_stop(Cause::signalled, kill_at);
  } else if (command_.at_end == AtEnd::kill) {
    begin_stop(Cause::at_end, kill_at);
  } else {
    state_ = State::lingering;
    keeper_->send(News{.kind = News::Kind::lingering});
    set_timer();
  }
}

void Guard::begin_stop(Cause cause, Deadline kill_at) {
  if (!has_command() && state_ != State::stopping)
    return;
  timetable_.only_kill(kill_at);
  if (state_ != State::stopping) {
    state_ = State::stopping;
    cause_ = cause;
    send_first_signal();
    keeper_->send(News{.kind = News::Kind::stopping, .cause = cause});
    if (cause == Cause::lease)
      allow_for_size();
  }
  set_timer();
}

/// Makes the kill begin earlier the longer it takes to look at the tree. The look itself ends in time for a kill that
/// must then begin at once.
void Guard::allow_for_size() {
  const auto now = BootClock::now();
  const auto until = now + (timetable_.kill_at() - now) / (looks_per_kill + 1);
  timetable_.kill_earlier(looks_per_kill * tree_.rehearse(until));
}

void Guard::send_first_signal() {
  if (cause_ == Cause::signalled && is_group_ending())
    return;
  for (const int number : {command_.first_signal, SIGCONT}) {  // a stopped process acts on a signal once it continues
    if (cause_ == Cause::at_end)
      tree_.signal_outside(group_.id(), number);
    group_.signal(number);
  }
}

/// Whether the signal that ended the command has just reached its whole group: a second one would only disturb those
/// that clean up. One that it survived, such as a HUP that made it read its configuration again, has not reached what
/// it started since.
bool Guard::is_group_ending() const {
  const bool just_told = told_to_stop_at_ && BootClock::now() < *told_to_stop_at_ + command_.kill_after;
  return just_told || group_.was_told_by_terminal();
}

void Guard::begin_kill(Cause cause) {
  if (cause_ == Cause::none)
    cause_ = cause;
  if (state_ == State::killing || state_ == State::gone)
    return;
  if (!group_.was_started()) {
    finish();
    return;
  }
  state_ = State::killing;
  keeper_->send(News{.kind = News::Kind::killing, .cause = cause_});
  group_.signal(SIGSTOP);  // stops most of the tree in one call
  kill_round();
}

void Guard::kill_round() {
  const bool over = sweep_.go_on(group_);
  if (over || (keeper_is_gone_ && sweep_.elapsed() > Sweep::longest)) {
    finish(sweep_.survivors());
    return;
  }
  if (const auto survivors = sweep_.report())
    keeper_->send(end_of_command(News::Kind::surviving, *survivors));
  set_timer();
}

/// The caller sees that KILL ended rlock, but not that its command is gone too.
void Guard::tell_of_keeper() {
  const int left = group_.is_over() ? 0 : sweep_.survivors().count;
  Log{Verbosity::normal}.error(
      fmt::format("{}: rlock was killed, and so the command was killed too{}",
                  lock_,
                  left == 0 ? "" : fmt::format("; {} could not be", describe(sweep_.survivors()))));
}

void Guard::finish(const News& last_word) {
  always(state_ != State::gone, "the guard's last word is its last");
  state_ = State::gone;
  keeper_->send_last(last_word);
}

void Guard::finish(const Survivors& survivors) { finish(end_of_command(News::Kind::ended, survivors)); }

News Guard::end_of_command(News::Kind kind, const Survivors& survivors) const {
  return {.kind = kind,
          .value = group_.status(),
          .cause = cause_,
          .survivors = survivors,
          .told_by_terminal = group_.was_told_by_terminal()};
}

}  // namespace

GuardProcess fork_guard(const Command& command, const std::string& lock) {
  auto [keeper_end, guard_end] = Line::make();
  const pid_t pid = ::fork();
  if (pid < 0)
    throw os_error("cannot start the guard process", errno);
  if (pid > 0)
    return {.pid = pid, .line = std::move(keeper_end)};
  ::sched_yield();  // the keeper asks Redis first, and we start while Redis thinks
  const pid_t keepers_group = ::getpgrp();
  stand_apart("guard");
  keeper_end.close();
  block_all_signals();
  try {
    Guard{command, lock, guard_end, keepers_group}.run();
  } catch (const std::exception&) {
    guard_end.send_last(News{.kind = News::Kind::failed, .value = errno});  // it failed before it started the command
    ::_exit(0);
  }
}

}  // namespace rlock::run
