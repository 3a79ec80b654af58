#include "run/tree.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>

#include "expect.h"
#include "run/command_group.h"

namespace rlock::unit {
namespace {

using run::CommandGroup;
using run::Tree;

[[noreturn]] void wait_for_kill() {
  for (;;) ::pause();
}

/// A process that has the part of the guard; its child, the command, which outlives it; and a child of that one, with a
/// session of its own.
struct Family {
  std::atomic<pid_t> guard, leader, worker;
  std::atomic<bool> is_ready;
};

/// Forks a process that has its part, and then waits to be killed. Only its parent tells its PID.
template <typename Part>
pid_t start(Part part) {
  const pid_t pid = ::fork();
  if (pid != 0)
    return pid;
  part();
  wait_for_kill();
}

void be_leader(Family& family) {
  ::setpgid(0, 0);
  family.worker = start([] { ::setsid(); });
}

/// Takes memory, so that its end takes long.
void be_guard(Family& family, std::size_t memory) {
  run::adopt_orphans();
  family.leader = start([&family] { be_leader(family); });
  void* const pages = ::mmap(nullptr, memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(pages, 1, memory);
  while (family.worker == 0) ::usleep(100);
  family.is_ready = true;
}

/// Runs with a family that has just been started, and ends it afterwards.
template <typename Action>
auto with_family(std::size_t memory, Action action) {
  void* const shared = ::mmap(nullptr, sizeof(Family), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Family& family = *new (shared) Family{};
  family.guard = start([&family, memory] { be_guard(family, memory); });
  while (!family.is_ready) ::usleep(100);
  const auto result = action(family);
  for (const pid_t pid : {family.guard.load(), family.leader.load(), family.worker.load()}) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ::munmap(shared, sizeof(Family));
  return result;
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

/// What a keeper knows of the family.
struct Known {
  explicit Known(const Family& family) {
    tree.is_left_by(family.guard);
    group.started_by_guard(family.leader);
  }
  Tree tree;
  CommandGroup group{tree};
};

/// Whether the command counts as over at any moment while its guard dies; it does not end before this returns.
bool seems_over_while_guard_dies(const Family& family) {
  Known known{family};
  ::kill(family.guard, SIGKILL);
  bool over = false;
  for (int left = 20; left > 0 && !over; --left) {
    over = known.group.is_over();
    if (!has_ended(family.guard))
      left = 20;  // some more looks after its death
  }
  return over;
}

/// Whether what the command leaves is overlooked if the command dies while the guard does: it then comes to us before
/// the command itself.
bool overlooks_orphan_of_that_moment(const Family& family) {
  Known known{family};
  ::kill(family.guard, SIGKILL);
  ::kill(family.leader, SIGKILL);
  do {
    known.tree.kill();
  } while (!known.group.is_over());
  return ::kill(family.worker, 0) == 0;
}

}  // namespace

/// In a process of its own, which adopts orphans.
void test_trees() {
  constexpr std::size_t little = 1;
  constexpr std::size_t much = 128UL << 20U;
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    run::adopt_orphans();
    int over = 0;
    for (int round = 0; round < 300; ++round) over += with_family(little, seems_over_while_guard_dies) ? 1 : 0;
    int overlooked = 0;
    for (int round = 0; round < 10; ++round) overlooked += with_family(much, overlooks_orphan_of_that_moment) ? 1 : 0;
    ::_exit((over == 0 ? 0 : 1) + (overlooked == 0 ? 0 : 2));
  }
  int status = -1;
  ::waitpid(keeper, &status, 0);
  const int wrong = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
  expect((wrong & 1) == 0, "a command whose guard dies is not over at any moment");
  expect((wrong & 2) == 0, "what a command leaves is not overlooked if it dies together with its guard");
}

}  // namespace rlock::unit
