#include "run/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rlock::run {

bool Terminal::is_ours() {
  if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp())
    return false;
  struct stat out {};
  const bool piped = ::fstat(STDOUT_FILENO, &out) == 0 && S_ISFIFO(out.st_mode);
  return !piped;
}

void Terminal::take_back() {
  if (!is_lent())
    return;
  // SIGTTOU is blocked, so a background group may do this. One that somebody else has by now is left alone.
  if (::tcgetpgrp(STDIN_FILENO) == borrower_)
    ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
  borrower_ = 0;
}

bool Terminal::stop_ourselves() {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  // TSTP, not STOP: the guard, which is in our group, blocks it and goes on watching the deadline.
  ::kill(0, SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGCONT) == 1;
}

void Terminal::interrupt_ourselves(int number) { ::kill(0, number); }

bool Terminal::hung_up() const {
  // A session's leader is told alone, and the foreground group only when that has ended.
  if (!is_lent() || ::getsid(0) == ::getpid())
    return false;
  pollfd terminal{STDIN_FILENO, 0, 0};
  return ::poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLHUP) != 0;
}

}  // namespace rlock::run
