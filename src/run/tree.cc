#include "run/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace rlock::run {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

std::vector<pid_t> numbers_in(std::string_view text) {
  std::vector<pid_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    pid_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc{})
      numbers.push_back(number);
    at = std::max(next, at + 1);
  }
  return numbers;
}

std::string read_file(const std::string& path) {
  std::string text;
  const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while (fd && (count = ::read(fd.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::vector<pid_t> numbered_entries(const std::string& path) {
  std::vector<pid_t> entries;
  const std::unique_ptr<DIR, CloseDir> dir{::opendir(path.c_str())};
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    const std::string_view name{static_cast<const char*>(entry->d_name)};
    pid_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc{} && end == name.data() + name.size())
      entries.push_back(number);
  }
  return entries;
}

/// A process' children are listed by the thread that forked them.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  for (const pid_t thread : numbered_entries(fmt::format("/proc/{}/task", pid))) {
    const auto more = numbers_in(read_file(fmt::format("/proc/{}/task/{}/children", pid, thread)));
    children.insert(children.end(), more.begin(), more.end());
  }
  return children;
}

/// For kernels built without those lists (CONFIG_PROC_CHILDREN): the parent that each process names.
std::vector<pid_t> scan_for_children_of(pid_t pid) {
  std::vector<pid_t> children;
  for (const pid_t candidate : numbered_entries("/proc")) {
    const std::string stat = read_file(fmt::format("/proc/{}/stat", candidate));
    const auto name_end = stat.rfind(')');  // the name may hold anything, ')' too
    if (name_end == std::string::npos || name_end + 4 > stat.size())
      continue;
    const auto numbers = numbers_in(std::string_view{stat}.substr(name_end + 4, 16));  // after ") S "
    if (!numbers.empty() && numbers.front() == pid)
      children.push_back(candidate);
  }
  return children;
}

std::vector<pid_t> descendants() {
  const pid_t self = ::getpid();
  const bool listed = ::access(fmt::format("/proc/{}/task/{}/children", self, self).c_str(), R_OK) == 0;
  std::vector<pid_t> found = listed ? children_of(self) : scan_for_children_of(self);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const pid_t child : listed ? children_of(found[i]) : scan_for_children_of(found[i])) found.push_back(child);
  }
  return found;
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

std::vector<pid_t> kill_descendants(pid_t leader, std::optional<int>& leader_status, Deadline deadline) {
  for (int round = 0;; ++round) {
    const auto alive = descendants();
    for (const pid_t pid : alive) ::kill(pid, SIGKILL);
    const Reaped reaped = reap(leader);
    if (reaped.leader_status)
      leader_status = reaped.leader_status;
    if (!reaped.any_left)
      return {};
    if (BootClock::now() >= deadline)
      return alive;
    // The killed need a moment to die, and orphans to arrive: soon at first, for that is the usual case.
    ::poll(nullptr, 0, round < 20 ? 1 : 20);
  }
}

}  // namespace rlock::run
