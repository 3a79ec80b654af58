#include "base/signals.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/word.h"

namespace rlock {

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool is_any_pending(std::initializer_list<int> numbers) {
  sigset_t pending;
  ::sigpending(&pending);
  return std::any_of(numbers.begin(), numbers.end(), [&pending](int number) {
    return sigismember(&pending, number) == 1 && !is_ignored(number);
  });
}

sigset_t Signals::set_of(std::initializer_list<int> numbers) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : numbers) ::sigaddset(&set, number);
  return set;
}

Signals::Signals(const sigset_t& delivered) : wanted_(delivered) {
  sigset_t blocked = wanted_;
  ::sigaddset(&blocked, SIGPIPE);
  ::sigaddset(&blocked, SIGXFSZ);
  ::sigaddset(&blocked, SIGTTOU);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  fd_ = Fd{::signalfd(-1, &wanted_, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd_)
    throw os_error("signalfd", errno);
}

void Signals::keep_failed_writes_quiet() {
  const sigset_t of_writes = set_of({SIGPIPE, SIGXFSZ});
  ::sigprocmask(SIG_BLOCK, &of_writes, nullptr);
}

/// A blocked signal is queued even if it is ignored. That is asked only here, to save a call for each at the start.
std::optional<Signal> Signals::next() {
  signalfd_siginfo info{};
  do {
    if (::read(fd(), &info, sizeof info) != sizeof info)
      return std::nullopt;
  } while (is_ignored(static_cast<int>(info.ssi_signo)));
  return Signal{.number = static_cast<int>(info.ssi_signo), .typed = info.ssi_code == SI_KERNEL};
}

void Signals::drop(int number) {
  ::sigdelset(&wanted_, number);
  ::signalfd(fd(), &wanted_, 0);
}

void block_all_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

void raise_unblocked(int number) {
  const sigset_t set = Signals::set_of({number});
  ::raise(number);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

std::optional<int> parse_signal(std::string_view text) {
  if (const auto number = parse_number(text, 1, NSIG - 1))
    return number;
  if (text.starts_with("SIG"))
    text.remove_prefix(3);
  for (int number = 1; number < NSIG; ++number) {
    const char* name = ::sigabbrev_np(number);
    if (name != nullptr && text == name)
      return number;
  }
  return std::nullopt;
}

}  // namespace rlock
