#include "run/job_control.h"

#include <signal.h>

#include <utility>

namespace rlock::run {

JobControl::Task JobControl::next() {
  if (const int number = std::exchange(stopped_by_, 0)) {
    const bool by_terminal = number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
    if ((by_terminal || terminal_.is_lent()) && !lend(number))
      return Task::suspend;
  }
  return continued_ ? Task::resume : Task::none;
}

/// It reads from /dev/tty, as sudo and ssh do for a password, though its own input is a pipe or a file.
bool JobControl::lend(int stopped_by) {
  if ((stopped_by != SIGTTIN && stopped_by != SIGTTOU) || terminal_.is_lent() || !Terminal::has_our_group())
    return false;
  if (std::exchange(offered_, true))
    return false;  // it could not take it: no circles
  guard_->send(Order{.kind = Order::Kind::resume, .foreground = true});
  return true;
}

void JobControl::suspend() {
  terminal_.take_back();
  offered_ = false;
  if (!Terminal::stop_ourselves())  // then the command could not have been without us: what the kernel does about that
    guard_->send(Order{.kind = Order::Kind::signal, .signal = SIGHUP});
}

void JobControl::resume() {
  continued_ = false;
  guard_->send(Order{.kind = Order::Kind::resume, .foreground = Terminal::is_ours()});
}

}  // namespace rlock::run
