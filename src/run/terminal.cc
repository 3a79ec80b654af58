#include "run/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/signals.h"
#include "run/process.h"
#include "run/process_table.h"

namespace rlock::run {
namespace {

/// The session's terminal, from which a command may read even if its standard input is something else.
class SessionTerminal {
 public:
  SessionTerminal() : fd_(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)) {}
  int fd() const { return fd_ ? fd_.get() : STDIN_FILENO; }

 private:
  Fd fd_;
};

/// A group that our PID namespace does not show has the number 0.
bool is_foreground(int terminal, pid_t group) { return group > 0 && ::tcgetpgrp(terminal) == group; }

/// Whether the group's first process descends from us or, if that has been reaped, one of the others.
bool is_of_descendants(pid_t group) try {
  const ProcessTable processes;
  const auto descends = [&processes](pid_t pid) { return processes.descends(pid, ::getpid()); };
  if (descends(group))
    return true;
  const auto members = processes.members_of(group).value_or(std::vector<pid_t>{});
  return std::any_of(members.begin(), members.end(), descends);
} catch (const std::exception&) {
  return false;
}

void set_modes(int terminal, const TerminalModes& modes) {
  ::tcsetattr(terminal, TCSANOW, &modes.line);
  for (int fd = STDIN_FILENO; const int before : modes.flags) {
    const int now = ::fcntl(fd, F_GETFL);
    if (::isatty(fd) != 0 && (before & O_NONBLOCK) == 0 && (now & O_NONBLOCK) != 0)
      ::fcntl(fd, F_SETFL, now & ~O_NONBLOCK);
    ++fd;
  }
}

}  // namespace

namespace terminal {

bool has_our_group() { return is_foreground(SessionTerminal{}.fd(), ::getpgrp()); }

bool give_to(pid_t group) { return ::tcsetpgrp(SessionTerminal{}.fd(), group) == 0; }

bool is_ours() {
  if (is_ignored(SIGTTIN))
    return has_our_group();
  if (!is_foreground(STDIN_FILENO, ::getpgrp()))
    return false;
  struct stat out {};
  const bool piped = ::fstat(STDOUT_FILENO, &out) == 0 && S_ISFIFO(out.st_mode);
  return !piped;
}

void take_back_from(pid_t borrower, pid_t owner, const std::optional<TerminalModes>& modes) {
  // SIGTTOU is blocked, so that a background group may do this. If another group has the terminal by now, it keeps it.
  const SessionTerminal terminal;
  const pid_t group = ::tcgetpgrp(terminal.fd());
  if (group <= 0 || group == owner)
    return;
  const bool is_left = ::kill(-group, 0) < 0 && errno == ESRCH;
  if (group != borrower && !is_left && !(modes && is_of_descendants(group)))
    return;
  if (::tcgetpgrp(terminal.fd()) != group)
    return;
  if (modes)  // first, since the owner may set others as soon as it has the terminal
    set_modes(terminal.fd(), *modes);
  ::tcsetpgrp(terminal.fd(), owner);
}

std::optional<TerminalModes> modes() {
  TerminalModes modes{};
  if (::tcgetattr(SessionTerminal{}.fd(), &modes.line) < 0)
    return std::nullopt;
  for (int fd = STDIN_FILENO; int& flags : modes.flags) flags = ::fcntl(fd++, F_GETFL);
  return modes;
}

bool can_stop_ourselves() {
  if (::getpid() == 1)
    return false;
  const pid_t trial = ::fork();
  if (trial == 0) {
    raise_unblocked(SIGTSTP);
    ::_exit(0);
  }
  if (trial < 0)
    return true;
  int status = 0;
  const bool stops = ::waitpid(trial, &status, WUNTRACED) == trial && WIFSTOPPED(status);
  if (stops) {
    ::kill(trial, SIGKILL);
    ::waitpid(trial, nullptr, 0);
  }
  return stops;
}

void stop_ourselves() {
  const sigset_t stop = Signals::set_of({SIGTSTP});
  ::kill(0, SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
}

void signal_ourselves(int number) { ::kill(0, number); }

bool has_hung_up_on_borrower() {
  // The kernel sends SIGHUP to the session leader only, and to the foreground group when the leader has ended.
  if (::getsid(0) == ::getpid())
    return false;
  const SessionTerminal session;
  pollfd terminal{session.fd(), 0, 0};
  return ::poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLHUP) != 0;
}

bool is_without_leader() {
  const Fd leader = open_pidfd(::getsid(0));
  pollfd end{leader.get(), POLLIN, 0};
  return leader ? ::poll(&end, 1, 0) == 1 : errno == ESRCH;
}

}  // namespace terminal

JobControl::Task JobControl::next() {
  if (const int number = std::exchange(stopped_by_, 0)) {
    const bool by_terminal = number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
    if ((by_terminal || has_lent_terminal()) && !lend(number))
      return may_suspend(number) ? Task::suspend : stay(number);
  }
  return continued_ ? Task::resume : Task::none;
}

/// Where our PID namespace does not show our group, whoever continued us could not give the command the terminal that
/// it wants.
bool JobControl::may_suspend(int stopped_by) {
  const bool wants_terminal = stopped_by == SIGTTIN || stopped_by == SIGTTOU;
  return !(wants_terminal && ::getpgrp() == 0) && terminal::can_stop_ourselves();
}

/// No shell is left that could continue us, so the kernel would not have heeded Ctrl-Z either. A command that wants the
/// terminal would only stop anew: the kernel sends SIGHUP to such a group. A SIGSTOP was meant for the command alone.
JobControl::Task JobControl::stay(int stopped_by) {
  if (stopped_by == SIGTTIN || stopped_by == SIGTTOU)
    guard_->send(Order{.kind = Order::Kind::signal, .signal = SIGHUP});
  return stopped_by == SIGSTOP && !continued_ ? Task::none : Task::resume;
}

bool JobControl::may_lend() {
  const bool ours = terminal::is_ours();
  if (ours && !modes_)
    modes_ = terminal::modes();
  command_may_have_it_ = command_may_have_it_ || ours;
  return ours;
}

/// Lends the terminal to a command that reads from /dev/tty although its standard input is a pipe or a file, as sudo
/// and ssh do to ask for a password.
bool JobControl::lend(int stopped_by) {
  if ((stopped_by != SIGTTIN && stopped_by != SIGTTOU) || has_lent_terminal() || !terminal::has_our_group())
    return false;
  if (std::exchange(offered_, true))
    return false;  // it was offered before, in vain: offering again would loop for ever
  modes_ = terminal::modes();
  command_may_have_it_ = true;
  guard_->send(Order{.kind = Order::Kind::resume, .foreground = true, .modes = modes_});
  return true;
}

void JobControl::take_back_terminal(Modes modes) {
  if (!std::exchange(command_may_have_it_, false))
    return;
  terminal::take_back_from(
      std::exchange(borrower_, 0), ::getpgrp(), modes == Modes::as_lent ? modes_ : std::optional<TerminalModes>{});
}

void JobControl::suspend() {
  take_back_terminal();
  offered_ = false;
  terminal::stop_ourselves();
}

void JobControl::resume() {
  continued_ = false;
  guard_->send(Order{.kind = Order::Kind::resume, .foreground = may_lend(), .modes = modes_});
}

}  // namespace rlock::run
