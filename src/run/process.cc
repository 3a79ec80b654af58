#include "run/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/escape.h"
#include "base/word.h"

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
  // It is no error if the machine has no syslog daemon.
  (void)::sendto(
      socket.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&log), sizeof log);
}

/// In bytes, with the NUL that ends each argument; 0 where there is no /proc.
std::size_t length_of_command_line() {
  const Fd file{::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC)};
  std::array<char, 4096> buffer;
  std::size_t length = 0;
  for (ssize_t count = 0; (count = ::read(file.get(), buffer.data(), buffer.size())) > 0;)
    length += static_cast<std::size_t>(count);
  return length;
}

constexpr std::array<std::string_view, 10> interpreters{
    "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "python3", "perl", "ruby"};

std::string base_name(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  if (path.starts_with('-'))                // a login shell
    path.remove_prefix(1);
  return std::string{path};
}

}  // namespace

Fd open_pidfd(pid_t pid) {
  return Fd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};  // close-on-exec, always
}

void send_signal(const Fd& pidfd, int number) { ::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0); }

int send_signal_to_group(const Fd& pidfd, int number) {
  constexpr unsigned int to_group = 4;  // PIDFD_SIGNAL_PROCESS_GROUP, newer than our headers
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, to_group));
}

std::optional<siginfo_t> look_at_child(pid_t child, int what) noexcept {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(child), &info, what | WNOHANG) < 0 || info.si_pid == 0)
    return std::nullopt;
  return info;
}

void stand_apart(std::string_view role) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, fmt::format("lock-{}", role).c_str());
  char* const name = program_invocation_name;  // argv[0], which the other arguments follow
  const std::size_t space = std::max(std::strlen(name), length_of_command_line());
  std::memset(name, 0, space);
  std::copy_n(role.begin(), std::min(role.size(), space), name);
}

Process Process::open(pid_t pid) {
  Fd fd = open_pidfd(pid);
  if (!fd && errno != ESRCH && errno != EINVAL && errno != ENOENT)  // the last two are said of a thread
    throw os_error("pidfd_open", errno);
  Process process{pid, std::move(fd)};
  const bool ours = is_ours(pid);
  // This check comes last: if the process still runs, the owner that we saw was its own.
  if (!process.fd_ || process.has_ended())
    throw Error{ExitCode::usage, fmt::format("there is no process {}", pid)};
  if (!ours)
    throw Error{ExitCode::usage, fmt::format("process {} is another user's", pid)};
  process.share_standard_error();
  return process;
}

bool Process::has_ended() const {
  pollfd ended{fd(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 1;
}

void Process::signal(int number) const { send_signal(fd_, number); }

/// In `script >log 2>&1` the script and we write at one offset, which a descriptor that we open does not share: what we
/// write with that, the script overwrites. A pipe or terminal is not kept: it has no offset, and `$(...)` waits for it.
void Process::share_standard_error() {
  struct stat ours {};
  if (::fstat(STDERR_FILENO, &ours) == 0 && S_ISREG(ours.st_mode) && is_its_standard_error(STDERR_FILENO))
    error_ = Fd{::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};
}

bool Process::is_its_standard_error(int fd) const {
  struct stat ours {};
  struct stat theirs {};
  return ::fstat(fd, &ours) == 0 && ::stat(fmt::format("/proc/{}/fd/2", pid_).c_str(), &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/// O_APPEND keeps us from overwriting a file that the process writes to.
Fd Process::open_standard_error() const {
  constexpr int flags = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  Fd file{::open(fmt::format("/proc/{}/fd/2", pid_).c_str(), flags)};
  return has_ended() ? Fd{} : std::move(file);  // once it has ended, the PID may be another process's
}

void Process::tell(std::string_view message) const {
  const std::string text = printable(message);
  const std::string line = fmt::format("rlock: {}\n", text);
  if (error_ && is_its_standard_error(error_.get()))
    (void)!::write(error_.get(), line.data(), line.size());
  else if (const Fd file = open_standard_error())
    (void)!::write(file.get(), line.data(), line.size());
  write_syslog(text);
}

std::vector<std::string> command_line(pid_t process) {
  const Fd file{::open(fmt::format("/proc/{}/cmdline", process).c_str(), O_RDONLY | O_CLOEXEC)};
  std::array<char, 4096> buffer{};
  const ssize_t size = file ? ::read(file.get(), buffer.data(), buffer.size()) : 0;
  std::vector<std::string> words;
  std::string_view rest{buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(0, size))};
  while (!rest.empty()) words.emplace_back(take_word(rest, '\0'));
  return words;
}

std::string script_name(pid_t process) {
  const std::vector<std::string> words = command_line(process);
  if (words.empty())
    return "";
  std::string program = base_name(words[0]);
  if (std::find(interpreters.begin(), interpreters.end(), program) == interpreters.end())
    return program;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool is_bundle = word.starts_with('-') && !word.starts_with("--");
    if (!word.starts_with('-'))
      return base_name(word);
    if (is_bundle && word.find('c') != std::string::npos)
      break;  // with -c commands follow, and no script
    const bool names_shell_option = is_bundle && (word.ends_with('o') || word.ends_with('O'));  // as in -euo pipefail
    if (names_shell_option || word == "--rcfile" || word == "--init-file")
      ++i;
  }
  return program;
}

}  // namespace rlock::run
