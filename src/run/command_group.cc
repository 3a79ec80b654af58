#include "run/command_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/duration.h"
#include "base/signals.h"
#include "run/process.h"
#include "run/terminal.h"

namespace rlock::run {
namespace {

[[noreturn]] void look_out(pid_t group, pid_t parent) {
  ::setpgid(0, group);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::syscall(SYS_close_range, 0U, ~0U, 0U);  // nobody may wait in vain for the end of a pipe
  if (::getppid() != parent)
    ::_exit(0);
  for (;;) ::pause();
}

/// The set of signals that are pending for a process as a whole, as /proc/PID/status has it: bit 0 is signal 1.
std::uint64_t pending_in(const Fd& status) {
  constexpr std::string_view name = "\nShdPnd:\t";
  std::array<char, 4096> buffer;
  const ssize_t count = ::pread(status.get(), buffer.data(), buffer.size(), 0);
  const std::string_view text{buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
  const std::size_t place = text.find(name);
  std::uint64_t pending = 0;
  if (place != std::string_view::npos)
    std::from_chars(text.data() + place + name.size(), text.data() + text.size(), pending, 16);
  return pending;
}

constexpr std::uint64_t bit_of(int number) { return std::uint64_t{1} << (number - 1); }

constexpr Milliseconds pause_between_looks{50};

bool is_our_child(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

void Lookout::join(pid_t group) {
  if (pid_ > 0)
    return;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0)
    look_out(group, parent);
  if (pid < 0)
    return;
  pid_ = pid;
  ::setpgid(pid, group);
  status_ = Fd{::open(fmt::format("/proc/{}/status", pid).c_str(), O_RDONLY | O_CLOEXEC)};
}

bool Lookout::has_seen_stop() const {
  if (!status_ || had_seen_stop_)
    return had_seen_stop_;
  const std::uint64_t pending = pending_in(status_) & ~expected_;
  for (const int number : {SIGINT, SIGQUIT, SIGHUP}) {
    if ((pending & bit_of(number)) != 0 && !is_ignored(number))
      return true;
  }
  return false;
}

void Lookout::expect(int number) {
  had_seen_stop_ = has_seen_stop();
  expected_ |= bit_of(number);
}

void Lookout::dismiss() {
  if (is_there())
    ::kill(pid_, SIGKILL);
}

bool Lookout::is_there() const { return pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0; }

void CommandGroup::started(pid_t leader, bool has_terminal) {
  leader_ = leader;
  tree_->begins_with(leader);
  if (has_terminal)
    lookout_.join(leader);
}

void CommandGroup::started_by_guard(pid_t leader) {
  started(leader, false);
  leader_handle_ = open_pidfd(leader);
}

void CommandGroup::look_at_leader() {
  const auto end = is_leader_there() ? look_at_child(leader_, WEXITED | WNOWAIT) : std::nullopt;
  if (!end)
    return;
  if (end->si_code == CLD_EXITED)
    leader_status_ = W_EXITCODE(end->si_status, 0);
  else
    leader_status_ = W_EXITCODE(0, end->si_status) | (end->si_code == CLD_DUMPED ? WCOREFLAG : 0);
  told_by_terminal_ = lookout_.has_seen_stop();
  lookout_.dismiss();
}

bool CommandGroup::died_of_signal() const { return has_ended() && WIFSIGNALED(*leader_status_); }

bool CommandGroup::is_over() noexcept {
  const bool any_left = tree_->reap();
  look_at_leader();  // only now: it may become our child at any moment, when the guard has just died
  look_again_at_ = never;
  if (any_left)
    return false;
  if (has_ended() && !reaped_) {  // it is the last: as a member of the group it would now only hide the others
    if (!leader_handle_)
      leader_handle_ = open_pidfd(leader_);
    reaped_ = ::waitpid(leader_, nullptr, WNOHANG) == leader_;
    tree_->is_exhausted();
  } else if (leader_handle_ && !is_our_child(leader_)) {  // the guard is dead, and had reaped it
    reaped_ = true;
  }
  // A group ID that still has members cannot be used again. A member may be a zombie that nobody reaps. One that forks
  // and ends while /proc is read hides its child, but not twice.
  if (!reaped_ || (send(0) < 0 && errno == ESRCH))
    return true;
  const bool seems_empty = !tree_->has_group_members();
  if (std::exchange(seemed_empty_, seems_empty) && seems_empty)
    return true;
  look_again_at_ = BootClock::now() + pause_between_looks;
  return false;
}

std::optional<int> CommandGroup::stopped_by() const {
  const auto stop = is_leader_there() ? look_at_child(leader_, WSTOPPED) : std::nullopt;
  return stop ? std::optional{stop->si_status} : std::nullopt;
}

/// A keeper may take over before the leader has become its child, or before is_over() has found it reaped by the guard.
void CommandGroup::signal(int number) const noexcept {
  if (!was_started() || (!reaped_ && !is_our_child(leader_)))
    return;
  send(number);
  if (!reaped_ && ::getpgid(leader_) != leader_)  // it has joined another group
    ::kill(leader_, number);
}

void CommandGroup::pass_on(int number) {
  lookout_.expect(number);
  signal(number);
}

/// Kernels before 6.9 know no signal to the group of a pidfd. There the ID is all that is left, and it was in use when
/// is_over() last looked.
int CommandGroup::send(int number) const noexcept {
  if (!reaped_)
    return ::kill(-leader_, number);
  const int result = send_signal_to_group(leader_handle_, number);
  return result < 0 && errno != ESRCH && errno != EPERM ? ::kill(-leader_, number) : result;
}

bool CommandGroup::take_terminal() {
  if (!is_leader_there() || !terminal::give_to(leader_))
    return false;
  lookout_.join(leader_);
  return true;
}

}  // namespace rlock::run
