#include "lock/ancestry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/word.h"

namespace rlock::lock {
namespace {

std::string read_proc(pid_t pid, std::string_view name) {
  const Fd file{::open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC)};
  std::array<char, 4096> buffer{};
  const ssize_t size = file ? ::read(file.get(), buffer.data(), buffer.size()) : 0;
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(0, size))};
}

struct Ancestor {
  std::string program;  // as the kernel calls it
  pid_t parent = 0;
};

/// Of `PID (PROGRAM) STATE PARENT ...`, where the program's name may contain anything.
Ancestor look_up(pid_t pid) {
  const std::string stat = read_proc(pid, "stat");
  const auto begin = stat.find('(');
  const auto end = stat.rfind(')');
  if (begin == std::string::npos || end == std::string::npos)
    return {};
  std::string_view rest = std::string_view{stat}.substr(std::min(end + 2, stat.size()));
  (void)take_word(rest);
  return {.program = stat.substr(begin + 1, end - begin - 1),
          .parent = parse_number<pid_t>(take_word(rest)).value_or(0)};
}

std::optional<Ancestor> find_ancestor(pid_t wanted) {
  constexpr int most = 1000;  // processes that end and begin meanwhile could lead us round in circles
  pid_t pid = ::getppid();
  for (int i = 0; i < most && pid > 0; ++i) {
    Ancestor ancestor = look_up(pid);
    if (pid == wanted)
      return ancestor;
    pid = ancestor.parent;
  }
  return std::nullopt;
}

/// The process that an `acquire --hold-pid` works for, which only its own command line tells; 0 where that is not
/// known.
pid_t process_behind(pid_t keeper) {
  const std::string line = read_proc(keeper, "cmdline");
  std::string_view rest{line};
  constexpr std::string_view option = "--hold-pid";
  while (!rest.empty()) {
    std::string_view word = take_word(rest, '\0');
    if (!word.starts_with(option))
      continue;
    word.remove_prefix(option.size());
    if (word.starts_with('='))
      word.remove_prefix(1);
    return parse_number<pid_t>(word.empty() ? take_word(rest, '\0') : word).value_or(0);
  }
  return 0;
}

std::string warn(pid_t process, std::string_view role, std::string_view remedy) {
  return fmt::format(
      "process {}, {}, has started this command: if each waits for the other, neither ends; {}", process, role, remedy);
}

}  // namespace

std::string warn_of_own_holder(const Owner& holder) {
  if (!holder.stays || holder.pid <= 0 || holder.host != host_name())
    return "";
  if (holder.for_another) {
    const pid_t process = process_behind(holder.pid);
    if (process <= 0 || !find_ancestor(process))
      return "";
    return warn(process,
                "which has it by --hold-pid",
                "write eval \"$(rlock acquire ... --output shell)\" there, and what it starts shares its lock");
  }
  // Machines that are containers may have the same name, and other processes under the same PIDs.
  const auto ancestor = find_ancestor(holder.pid);
  if (!ancestor || ancestor->program != look_up(::getpid()).program)
    return "";
  return warn(holder.pid,
              "which holds it",
              "what it starts shares its lock if it keeps RLOCK_HELD, RLOCK_REDIS and RLOCK_PREFIX");
}

}  // namespace rlock::lock
