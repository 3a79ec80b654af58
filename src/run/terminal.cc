#include "run/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/signals.h"

namespace rlock::run::terminal {
namespace {

/// The session's terminal, from which a command may read even if its standard input is something else.
class SessionTerminal {
 public:
  SessionTerminal() : fd_(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)) {}
  int fd() const { return fd_ ? fd_.get() : STDIN_FILENO; }

 private:
  Fd fd_;
};

}  // namespace

bool has_our_group() { return ::tcgetpgrp(SessionTerminal{}.fd()) == ::getpgrp(); }

bool give_to(pid_t group) { return ::tcsetpgrp(SessionTerminal{}.fd(), group) == 0; }

bool is_ours() {
  if (is_ignored(SIGTTIN))
    return has_our_group();
  if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp())
    return false;
  struct stat out {};
  const bool piped = ::fstat(STDOUT_FILENO, &out) == 0 && S_ISFIFO(out.st_mode);
  return !piped;
}

void take_back_from(pid_t borrower) {
  // SIGTTOU is blocked, so that a background group may do this. If another group has the terminal by now, it keeps it.
  const SessionTerminal terminal;
  if (::tcgetpgrp(terminal.fd()) == borrower)
    ::tcsetpgrp(terminal.fd(), ::getpgrp());
}

bool stop_ourselves() {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  ::kill(0, SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGCONT) == 1;
}

void interrupt_ourselves(int number) { ::kill(0, number); }

bool has_hung_up_on_borrower() {
  // The kernel sends SIGHUP to the session leader only, and to the foreground group when the leader has ended.
  if (::getsid(0) == ::getpid())
    return false;
  const SessionTerminal session;
  pollfd terminal{session.fd(), 0, 0};
  return ::poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLHUP) != 0;
}

}  // namespace rlock::run::terminal
