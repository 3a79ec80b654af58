#include "run/guard.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/duration.h"
#include "run/child.h"
#include "run/environment.h"
#include "run/scheduling.h"

namespace rlock::run {
namespace {

/// How long to go on killing when nobody waits for the report any more, or when memory has run out.
constexpr std::chrono::seconds longest_kill{10};

/// Preparing the kill is worth its cost only for a command that runs at least this long.
constexpr Milliseconds preparation_after{50};
constexpr Milliseconds longest_rehearsal{100};

/// To kill thousands of processes on a busy machine takes longer than the margin. It also takes longer than a look at
/// them, since each must run once more, to stop.
constexpr int looks_per_kill = 4;

bool stops(int number) { return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT; }

}  // namespace

Guard::Guard(Command command, const Line& keeper)
    : command_(std::move(command)), keeper_(&keeper), signals_({SIGCHLD}) {
  adopt_orphans();
}

void Guard::run() {
  if (tree_.is_visible()) {
    try {
      watch();
    } catch (const std::exception&) {
      kill_without_memory();
    }
  } else {
    finish(News{.kind = News::Kind::blind});
  }
  give_way();
  keeper_->await_end();  // our exit must not compete with the keeper's, which the user waits for
}

void Guard::watch() {
  // This runs the code that handles an order once, so that its pages are in memory when the first order comes.
  look_at_clock();
  take_orders();
  while (state_ != State::gone) {
    const int keeper = keeper_is_gone_ ? -1 : keeper_->fd();
    std::array<pollfd, 3> fds{{{keeper, POLLIN, 0}, {timer_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR)
      begin_kill();
    // The clock comes first: after a suspend the deadline may be long past.
    look_at_clock();
    if (fds[2].revents != 0)
      look_at_children();
    if (fds[0].revents != 0)
      take_orders();
  }
}

/// The last resort when watching has failed unexpectedly, for example for lack of memory: nobody can watch the command
/// any longer, so it is killed.
void Guard::kill_without_memory() {
  if (group_.was_started()) {
    const bool over = Sweep::sweep_without_memory(tree_, group_, longest_kill);
    finish(Survivors{.count = over ? 0 : 1});
  } else {
    finish(News{.kind = News::Kind::failed, .value = ENOMEM});
  }
}

void Guard::set_timer() { timer_.set(state_ == State::killing ? sweep_.next() : timetable_.next()); }

void Guard::look_at_clock() {
  const auto now = BootClock::now();
  if (state_ == State::killing) {
    if (now >= sweep_.next())
      kill_round();
    return;
  }
  switch (timetable_.due(now)) {
    case Timetable::Duty::none:
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

void Guard::take_orders() {
  Order order;
  std::string environment;
  while (state_ != State::gone && !keeper_is_gone_) {
    switch (keeper_->receive(order, environment)) {
      case Line::Status::message:
        obey(order, environment);
        break;
      case Line::Status::nothing:
        return;
      case Line::Status::closed:  // nobody renews the lease any more
        keeper_is_gone_ = true;
        begin_kill();
        return;
    }
  }
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
      return resume(order.foreground);
  }
}

void Guard::start(const Order& order, const std::string& environment) {
  const auto now = BootClock::now();
  if (now >= order.term_at) {  // the keeper, the guard or the whole machine was stopped meanwhile
    finish(News{.kind = News::Kind::too_late});
    return;
  }
  const Child child = start_child(command_.file,
                                  command_.argv,
                                  merge_environment(std::move(command_.environment), environment),
                                  {.foreground = order.foreground, .ignore_sigchld = command_.ignore_sigchld});
  if (child.pid < 0) {
    finish(child.exec_error != 0 ? News{.kind = News::Kind::not_started, .value = child.exec_error}
                                 : News{.kind = News::Kind::failed, .value = child.fork_error});
    return;
  }
  group_.started(child.pid, order.foreground);
  state_ = State::running;
  become_punctual();
  timetable_.set_lease(order.term_at, order.kill_at);
  timetable_.begin(now + preparation_after, command_.max_runtime ? now + *command_.max_runtime : never);
  set_timer();
  if (order.foreground)
    keeper_->send(News{.kind = News::Kind::lent, .value = child.pid});
}

void Guard::extend(const Order& order) {
  if (!has_command())
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
  group_.signal(number);
  if (!stops(number))
    return;
  told_to_stop_ = true;
  if (state_ == State::lingering)
    begin_stop(Cause::signalled, BootClock::now() + command_.kill_after);
}

void Guard::resume(bool foreground) {
  if (foreground && group_.take_terminal())
    keeper_->send(News{.kind = News::Kind::lent, .value = group_.id()});
  group_.signal(SIGCONT);
}

void Guard::look_at_children() {
  signals_.next();  // one read suffices, since SIGCHLD is never queued twice
  if (state_ == State::gone || state_ == State::waiting)
    return;
  if (!group_.reap_children()) {
    finish();
  } else if (state_ == State::running && group_.has_ended()) {
    deal_with_the_rest();
  } else if (state_ != State::killing) {  // the killing itself stops processes, which is no news
    if (const auto number = group_.stopped_by())
      keeper_->send(News{.kind = News::Kind::stopped, .value = *number});
  }
}

/// The command has ended and left processes behind. If it exited by itself, it left them on purpose.
void Guard::deal_with_the_rest() {
  const Deadline kill_at = BootClock::now() + command_.kill_after;
  if (group_.died_of_signal() || told_to_stop_) {
    begin_stop(Cause::signalled, kill_at);
  } else if (command_.at_end == AtEnd::leave) {
    finish();
  } else if (command_.at_end == AtEnd::kill) {
    begin_stop(Cause::at_end, kill_at);
  } else {
    state_ = State::lingering;
    keeper_->send(News{.kind = News::Kind::lingering});
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

/// The look ends in time for a kill that must then begin at once.
void Guard::allow_for_size() {
  const auto now = BootClock::now();
  const auto until = now + (timetable_.kill_at() - now) / (looks_per_kill + 1);
  timetable_.kill_earlier(looks_per_kill * tree_.rehearse(until));
}

void Guard::send_first_signal() {
  if (cause_ == Cause::at_end) {
    tree_.signal(command_.first_signal);
    return;
  }
  // The signal that ended the command has reached its whole group. A second one would only disturb those that clean up.
  if (cause_ == Cause::signalled && (told_to_stop_ || group_.died_of_terminal()))
    return;
  group_.signal(command_.first_signal);
  group_.signal(SIGCONT);  // a stopped process acts on a signal only once it continues
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
  if (!group_.has_ended())
    group_.signal(SIGSTOP);  // stops most of the tree in one call
  kill_round();
}

void Guard::kill_round() {
  const bool over = sweep_.go_on(group_);
  if (over || (keeper_is_gone_ && sweep_.elapsed() > longest_kill)) {
    finish(sweep_.survivors());
    return;
  }
  if (const auto survivors = sweep_.report())
    keeper_->send(
        News{.kind = News::Kind::surviving, .value = group_.status(), .cause = cause_, .survivors = *survivors});
  set_timer();
}

void Guard::finish(const News& last_word) {
  state_ = State::gone;
  keeper_->insist(last_word);
}

void Guard::finish(const Survivors& survivors) {
  finish(News{.kind = News::Kind::ended, .value = group_.status(), .cause = cause_, .survivors = survivors});
}

}  // namespace rlock::run
