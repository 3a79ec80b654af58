#include "run/tree.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "expect.h"
#include "run/command_group.h"

namespace rlock::unit {
namespace {

using run::CommandGroup;
using run::Tree;

[[noreturn]] void wait_for_kill() {
  for (;;) ::pause();
}

/// A process that has the part of the guard: its child, the command, outlives it.
struct Family {
  pid_t guard, leader;
};

Family start_family() {
  std::array<int, 2> line{};
  (void)!::pipe(line.data());
  const pid_t guard = ::fork();
  if (guard == 0) {
    const pid_t leader = ::fork();
    if (leader == 0)
      wait_for_kill();
    (void)!::write(line[1], &leader, sizeof leader);
    wait_for_kill();
  }
  Family family{.guard = guard, .leader = 0};
  (void)!::read(line[0], &family.leader, sizeof family.leader);
  ::close(line[0]);
  ::close(line[1]);
  return family;
}

/// Whether the command counts as over at any moment while its guard dies; it does not end before this returns.
bool seems_over_while_guard_dies() {
  const Family family = start_family();
  Tree tree;
  tree.is_left_by(family.guard);
  CommandGroup group{tree};
  group.started_by_guard(family.leader);
  ::kill(family.guard, SIGKILL);
  bool over = false;
  siginfo_t info{};
  for (int left = 20; left > 0 && !over; --left) {
    over = group.is_over();
    ::waitid(P_PID, static_cast<id_t>(family.guard), &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_pid == 0)
      left = 20;  // some more looks after its death
  }
  ::kill(family.leader, SIGKILL);
  ::waitpid(family.guard, nullptr, 0);
  ::waitpid(family.leader, nullptr, 0);
  return over;
}

}  // namespace

/// In a process of its own, which adopts orphans.
void test_trees() {
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    run::adopt_orphans();
    int over = 0;
    for (int round = 0; round < 300; ++round) over += seems_over_while_guard_dies() ? 1 : 0;
    ::_exit(over == 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(keeper, &status, 0);
  expect_same(status, 0, "a command whose guard dies is not over at any moment");
}

}  // namespace rlock::unit
