#include "run/guard_process.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

#include "base/error.h"
#include "run/guard.h"

namespace rlock::run {
namespace {

void block_all_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

GuardProcess fork_guard(const Command& command) {
  auto [keeper_end, guard_end] = Line::make();
  const pid_t pid = ::fork();
  if (pid < 0)
    throw os_error("cannot start the guard process", errno);
  if (pid > 0)
    return {.pid = pid, .line = std::move(keeper_end)};
  ::setpgid(0, 0);
  keeper_end.close();
  block_all_signals();
  try {
    Guard{command, guard_end}.run();
  } catch (const std::exception&) {
    guard_end.insist(News{.kind = News::Kind::failed, .value = errno});  // it failed before it started the command
  }
  ::_exit(0);
}

}  // namespace rlock::run
