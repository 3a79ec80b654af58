#include "run/command_group.h"

#include <sys/wait.h>

#include "run/terminal.h"

namespace rlock::run {

bool CommandGroup::reap_children() {
  const Reaped reaped = reap(leader_);
  if (reaped.leader_status)
    leader_status_ = reaped.leader_status;
  return reaped.any_left;
}

bool CommandGroup::died_of_signal() const { return has_ended() && WIFSIGNALED(*leader_status_); }

bool CommandGroup::died_of_terminal() const {
  if (!has_terminal_ || !died_of_signal())
    return false;
  const int number = WTERMSIG(*leader_status_);
  return number == SIGINT || number == SIGQUIT;
}

std::optional<int> CommandGroup::stopped_by() const {
  siginfo_t info{};
  if (!is_leader_there() || ::waitid(P_PID, static_cast<id_t>(leader_), &info, WSTOPPED | WNOHANG) < 0 ||
      info.si_pid == 0)
    return std::nullopt;
  return info.si_status;
}

/// kill(2) by group ID is safe only until the leader is reaped, since then the ID may be reused. Afterwards only those
/// of our descendants that are in the group are signalled, one by one.
void CommandGroup::signal(int number) const {
  if (is_leader_there()) {
    ::kill(-leader_, number);
  } else if (was_started()) {
    tree_->signal(number, leader_);
  }
}

bool CommandGroup::take_terminal() {
  if (!is_leader_there() || !terminal::give_to(leader_))
    return false;
  has_terminal_ = true;
  return true;
}

}  // namespace rlock::run
