#include "run/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/escape.h"
#include "run/pidfd.h"

namespace rlock::run {
namespace {

/// A process's directory in /proc belongs to the user that it runs as.
bool is_ours(pid_t pid) {
  struct stat info {};
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &info) == 0 && info.st_uid == ::geteuid();
}

/// Sends one datagram in the format that syslog(3) uses.
void write_syslog(std::string_view message) {
  constexpr int user_warning = 12;  // facility 1, severity 4
  sockaddr_un log{.sun_family = AF_UNIX, .sun_path = "/dev/log"};
  const Fd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const std::string text = fmt::format("<{}>rlock[{}]: {}", user_warning, ::getpid(), message);
  // A machine without a syslog daemon is no error.
  (void)::sendto(
      socket.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&log), sizeof log);
}

}  // namespace

Process Process::open(pid_t pid) {
  Fd fd = open_pidfd(pid);
  if (!fd && errno != ESRCH && errno != EINVAL)
    throw os_error("pidfd_open", errno);
  Process process{pid, std::move(fd)};
  const bool ours = is_ours(pid);
  // This check comes last: if the process still runs, the owner that we saw was its own.
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

void Process::signal(int number) const { send_signal(fd_, number); }

/// O_APPEND keeps us from overwriting a file that the process writes to.
Fd Process::open_standard_error() const {
  constexpr int flags = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  Fd file{::open(fmt::format("/proc/{}/fd/2", pid_).c_str(), flags)};
  return has_ended() ? Fd{} : std::move(file);  // once it has ended, the PID may be another process's
}

void Process::tell(std::string_view message) const {
  const std::string text = printable(message);
  const std::string line = fmt::format("rlock: {}\n", text);
  if (const Fd file = open_standard_error())
    (void)!::write(file.get(), line.data(), line.size());
  write_syslog(text);
}

}  // namespace rlock::run
