#include "run/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace rlock::run {
namespace {

/// A process' directory belongs to whom it runs as.
bool is_ours(pid_t pid) {
  struct stat info {};
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &info) == 0 && info.st_uid == ::geteuid();
}

}  // namespace

Process Process::open(pid_t pid) {
  Fd fd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};  // close-on-exec, always
  if (!fd && errno != ESRCH && errno != EINVAL)
    throw os_error("pidfd_open", errno);
  Process process{std::move(fd)};
  const bool ours = is_ours(pid);
  // Asked last: only if it still runs was it this process whose owner we saw.
  if (!process.fd_ || process.has_ended())
    throw Error{ExitCode::usage, fmt::format("there is no process {}", pid)};
  if (!ours)
    throw Error{ExitCode::usage, fmt::format("process {} is another user's", pid)};
  return process;
}

bool Process::has_ended() const {
  pollfd ended{fd(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 1;
}

void Process::signal(int number) const {
  // One that has ended meanwhile needs none.
  ::syscall(SYS_pidfd_send_signal, fd(), number, nullptr, 0);
}

}  // namespace rlock::run
