#include "run/job_control.h"

#include <signal.h>

#include <utility>

namespace rlock::run {

JobControl::Task JobControl::next() {
  if (const int number = std::exchange(stopped_by_, 0)) {
    const bool by_terminal = number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
    if ((by_terminal || has_lent_terminal()) && !lend(number))
      return Task::suspend;
  }
  return continued_ ? Task::resume : Task::none;
}

/// Lends the terminal to a command that reads from /dev/tty although its standard input is a pipe or a file, as sudo
/// and ssh do to ask for a password.
bool JobControl::lend(int stopped_by) {
  if ((stopped_by != SIGTTIN && stopped_by != SIGTTOU) || has_lent_terminal() || !terminal::has_our_group())
    return false;
  if (std::exchange(offered_, true))
    return false;  // it was offered before, in vain: offering again would loop for ever
  guard_->send(Order{.kind = Order::Kind::resume, .foreground = true});
  return true;
}

void JobControl::take_back_terminal() {
  if (has_lent_terminal())
    terminal::take_back_from(std::exchange(borrower_, 0));
}

void JobControl::suspend() {
  take_back_terminal();
  offered_ = false;
  // No shell is left that could continue the job. The kernel sends SIGHUP to such a group, so the command gets one too.
  if (!terminal::stop_ourselves())
    guard_->send(Order{.kind = Order::Kind::signal, .signal = SIGHUP});
}

void JobControl::resume() {
  continued_ = false;
  guard_->send(Order{.kind = Order::Kind::resume, .foreground = terminal::is_ours()});
}

}  // namespace rlock::run
