#include "run/tree.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/error.h"
#include "run/pidfd.h"

namespace rlock::run {
namespace {

/// How many times to look for processes that were forked while others were being stopped.
constexpr int most_looks = 5;

/// A tree may have more processes than the usual limit of open files.
void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
    return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

void adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
    throw os_error("prctl(PR_SET_CHILD_SUBREAPER)", errno);
}

Reaped reap(pid_t leader) {
  Reaped reaped;
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid == leader)
      reaped.leader_status = status;
    if (pid > 0 || (pid < 0 && errno == EINTR))
      continue;
    reaped.any_left = pid == 0;
    return reaped;
  }
}

void Tree::spare_elders_of(pid_t child) {
  spared_ = processes_.our_children();
  const auto place = std::find(spared_.begin(), spared_.end(), child);
  if (place == spared_.end())
    throw Error{ExitCode::os, fmt::format("/proc does not list our child {}", child)};
  spared_.erase(place, spared_.end());
}

BootClock::duration Tree::rehearse(Deadline until) {
  const auto begin = BootClock::now();
  look(until);
  forget();  // to close thousands of pidfds would delay the killing
  return BootClock::now() - begin;
}

/// Lists the processes.
void Tree::look(Deadline until) {
  forget();
  find(0, until);
}

void Tree::signal(int number, std::optional<pid_t> group) {
  look();
  for (const Member& member : members_) {
    if (!group || ::getpgid(member.pid) == *group)
      signal(member, number);
  }
}

void Tree::kill() noexcept {
  try {
    allow_many_descriptors();
    forget();
    for (int looks = 0; looks < most_looks && find(SIGSTOP); ++looks) {
    }
    // The youngest come first: one of them may still be forking when its stop is on the way, and only KILL ends a fork.
    for (auto member = members_.rbegin(); member != members_.rend(); ++member) signal(*member, SIGKILL);
    forget();
  } catch (const std::bad_alloc&) {
    if (spared_.empty())
      kill_children();
  }
}

void Tree::kill_children() const noexcept { processes_.signal_our_children(SIGKILL); }

Survivors Tree::survivors() {
  Survivors survivors;
  look();
  for (const Member& member : members_) {
    if (member.pid == uncounted_ || processes_.is_dead(member.pid))
      continue;
    const auto place = static_cast<std::size_t>(survivors.count++);
    if (place < survivors.some.size())
      survivors.some[place] = member.pid;
  }
  if (members_.empty() && spared_.empty())  // a child is left that /proc does not show
    survivors.count = 1;
  return survivors;
}

void Tree::forget() {
  members_.clear();
  known_ = {spared_.begin(), spared_.end()};
}

/// Adds the processes that are not members yet, and sends each the signal as soon as it is found. Returns whether any
/// was added. Ends at `until`.
bool Tree::find(int number, Deadline until) {
  const std::size_t before = members_.size();
  find_children();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i >= before && !members_[i].handle && number != 0)
      signal(members_[i], number);
  }
  for (std::size_t i = 0; i < members_.size() && BootClock::now() < until; ++i)
    find_children_of(members_[i].pid, number);
  return members_.size() > before;
}

void Tree::find_children() {
  for (const pid_t child : processes_.our_children()) {
    if (known_.insert(child).second)
      members_.push_back({.pid = child, .handle = Fd{}});
  }
}

void Tree::find_children_of(pid_t parent, int number) {
  std::vector<Member> held;
  for (const pid_t child : processes_.children_of(parent)) {
    if (known_.contains(child))
      continue;
    Fd handle = open_pidfd(child);
    if (handle)
      held.push_back({.pid = child, .handle = std::move(handle)});
  }
  if (held.empty())
    return;
  // The PID was listed before and after the pidfd was opened, so the pidfd refers to a child of this parent.
  const auto again = processes_.children_of(parent);
  const std::unordered_set<pid_t> listed{again.begin(), again.end()};
  for (Member& member : held) {
    if (!listed.contains(member.pid))
      continue;
    if (number != 0)
      signal(member, number);
    known_.insert(member.pid);
    members_.push_back(std::move(member));
  }
}

void Tree::signal(const Member& member, int number) const {
  if (member.handle) {
    send_signal(member.handle, number);
  } else {
    ::kill(member.pid, number);
  }
}

}  // namespace rlock::run
