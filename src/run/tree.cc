#include "run/tree.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/error.h"
#include "run/process.h"

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

/// Where no descriptor can be had, no process but our children can be seen.
bool can_open() { return static_cast<bool>(open_pidfd(::getpid())); }

bool has_ended(pid_t child) { return look_at_child(child, WEXITED | WNOWAIT).has_value(); }

}  // namespace

void adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
    throw os_error("prctl(PR_SET_CHILD_SUBREAPER)", errno);
}

/// Tells which of our children are in the tree, if it is asked about them one after the other, in their order.
class Tree::Kin {
 public:
  /// The tree begins with the child `first`; 0: with the first of all. The guard is in it too, and with `early` whoever
  /// has come to us since the guard was forked.
  Kin(pid_t first, pid_t guard, bool early) : begun_(first == 0), first_(first), guard_(guard), early_(early) {}
  bool includes(pid_t child) {
    begun_ = begun_ || child == first_;
    after_guard_ = after_guard_ || child == guard_;
    return begun_ || child == guard_ || (early_ && after_guard_ && ::getpgid(child) != ::getpgrp());
  }

 private:
  bool begun_;
  bool after_guard_ = false;
  pid_t first_;
  pid_t guard_;
  bool early_;
};

void Tree::is_left_by(pid_t guard) noexcept {
  guard_ = guard;
  has_strangers_ = ::getpid() == 1 || ProcessTable::Children{processes_}.next() != guard;
}

/// While the guard lives, nothing of the command is our child yet. When it is dead, it left us the leader first; a
/// guard that had already reaped the leader, or not told us of it, leaves only its own place to go by.
Tree::Kin Tree::kin() const noexcept {
  constexpr pid_t nobody = -1;
  if (guard_ == 0)
    return {0, 0, false};
  ProcessTable::Children children{processes_};
  while (const pid_t child = children.next()) {
    if (child == leader_)
      return {leader_, guard_, !has_strangers_};
  }
  return {has_ended(guard_) && !exhausted_ ? guard_ : nobody, guard_, !has_strangers_};
}

bool Tree::has_living_guard() const noexcept { return guard_ != 0 && !has_ended(guard_); }

bool Tree::reap() const noexcept {
  bool left = false;
  bool again = true;
  while (std::exchange(again, false)) {
    left = false;
    // Either of them leaves us children when it dies, which this look may have missed if it dies meanwhile.
    const bool guard_lived = has_living_guard();
    const bool leader_lived = leader_ != 0 && !has_ended(leader_);
    Kin kin_of_ours = kin();
    ProcessTable::Children children{processes_};
    while (const pid_t child = children.next()) {
      if (!kin_of_ours.includes(child))
        continue;
      const bool stays = child == leader_ || child == guard_;
      const bool ended = stays ? has_ended(child) : ::waitpid(child, nullptr, WNOHANG) > 0;
      const bool left_us_others = (child == guard_ && guard_lived) || (child == leader_ && leader_lived);
      if (!ended)
        left = true;
      else if (!stays || left_us_others)
        again = true;  // one that was reaped may have hidden others from this reader
    }
  }
  return left;
}

/// Not for ever, where children end as fast as they are reaped. The SIGCHLD of the rest may have been read already, as
/// where all came at once from a parent that had not reaped them: another one calls for the next look.
void Tree::reap_ended() const noexcept {
  constexpr int most = 1000;
  for (int reaped = 0; reaped < most; ++reaped) {
    siginfo_t end{};
    const int result = ::waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT);
    if (result < 0 || end.si_pid == 0 || end.si_pid == leader_)
      return;
    ::waitpid(end.si_pid, nullptr, WNOHANG);
  }
  ::kill(::getpid(), SIGCHLD);
}

/// What is listed before we see that the guard lives is not the command's.
void Tree::reap_others() const {
  const auto children = processes_.our_children();
  Kin kin_of_ours = kin();
  for (const pid_t child : children) {
    if (!kin_of_ours.includes(child))
      ::waitpid(child, nullptr, WNOHANG);
  }
}

BootClock::duration Tree::rehearse(Deadline until) {
  allow_many_descriptors();
  const auto begin = BootClock::now();
  look(until);
  forget();  // closing thousands of pidfds would delay the killing
  return BootClock::now() - begin;
}

/// Lists the processes.
void Tree::look(Deadline until) {
  forget();
  find(0, until);
}

void Tree::signal_outside(pid_t group, int number) {
  look();
  for (const Member& member : members_) {
    if (::getpgid(member.pid) != group)
      signal(member, number);
  }
  forget();
}

bool Tree::kill() noexcept {
  try {
    allow_many_descriptors();
    forget();
    int looks = 0;
    while (looks < most_looks && find(SIGSTOP)) ++looks;
    is_growing_ = looks == most_looks;
    // The youngest come first: one of them may still be forking when its stop is on the way, and only KILL ends a fork.
    for (auto member = members_.rbegin(); member != members_.rend(); ++member) signal(*member, SIGKILL);
    const bool saw_all = can_open();
    forget();
    return saw_all;
  } catch (const std::bad_alloc&) {
    kill_children();
    return false;
  }
}

void Tree::kill_children() const noexcept {
  Kin kin_of_ours = kin();
  ProcessTable::Children children{processes_};
  while (const pid_t child = children.next()) {
    if (kin_of_ours.includes(child))
      ::kill(child, SIGKILL);
  }
}

bool Tree::has_group_members() const noexcept {
  try {
    const auto members = processes_.members_of(leader_);
    return !members || !members->empty();
  } catch (const std::bad_alloc&) {
    return true;
  }
}

Survivors Tree::survivors() noexcept {
  const bool guard_lived = has_living_guard();
  Survivors survivors;
  const auto add = [&survivors](pid_t pid) {
    const auto place = static_cast<std::size_t>(survivors.count++);
    if (place < survivors.some.size())
      survivors.some[place] = pid;
  };
  try {
    look();
    std::size_t looked_at = 0;
    do {  // one that has died meanwhile has left its children to us, unseen
      for (; looked_at < members_.size(); ++looked_at) {
        const pid_t pid = members_[looked_at].pid;
        if (pid != guard_ && !processes_.is_dead(pid))
          add(pid);
      }
    } while (survivors.count == 0 && find(0));
    for (const pid_t pid :
         leader_ > 0 ? processes_.members_of(leader_).value_or(std::vector<pid_t>{}) : std::vector<pid_t>{}) {
      if (!known_.contains(pid))
        add(pid);
    }
    const bool is_hidden = guard_lived && !can_open();
    if (survivors.count == 0 && (is_hidden || members_.empty()))  // below the guard, or where /proc does not show it
      survivors.count = 1;
  } catch (const std::bad_alloc&) {
    survivors.count = std::max(survivors.count, 1);
  }
  return survivors;
}

void Tree::forget() {
  members_.clear();
  known_.clear();
}

/// Adds the processes that are not members yet, and sends each the signal as soon as it is found. Returns whether any
/// was added. Ends at `until`.
bool Tree::find(int number, Deadline until) {
  const std::size_t before = members_.size();
  find_children();
  for (std::size_t i = before; number != 0 && i < members_.size(); ++i) signal(members_[i], number);
  for (std::size_t i = 0; i < members_.size() && BootClock::now() < until; ++i)
    find_children_of(members_[i].pid, number);
  return members_.size() > before;
}

void Tree::find_children() {
  Kin kin_of_ours = kin();
  for (const pid_t child : processes_.our_children()) {
    if (kin_of_ours.includes(child) && known_.insert(child).second)
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
