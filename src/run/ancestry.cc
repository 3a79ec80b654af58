#include "run/ancestry.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/word.h"
#include "run/process.h"
#include "run/process_table.h"

namespace rlock::run {
namespace {

namespace fs = std::filesystem;

/// Whether that process is our parent, our parent's parent, and so on.
bool is_ancestor(pid_t wanted) { return ProcessTable{}.descends(::getppid(), wanted); }

/// The process that an `acquire --hold-pid` works for, which only its command line tells; 0 where that is not known.
pid_t process_behind(pid_t keeper) {
  constexpr std::string_view option = "--hold-pid";
  const auto words = command_line(keeper);
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == option && word + 1 != words.end())
      return parse_number<pid_t>(word[1]).value_or(0);
    if (word->starts_with(option) && word->substr(option.size()).starts_with('='))
      return parse_number<pid_t>(word->substr(option.size() + 1)).value_or(0);
  }
  return 0;
}

std::string describe(pid_t process, std::string_view role, std::string_view remedy) {
  return fmt::format(
      "process {}, {}, has started this command: if each waits for the other, neither ends; {}", process, role, remedy);
}

/// Whether it can read from the pipe that is our standard output.
bool reads_from_us(pid_t process) {
  std::error_code error;
  const auto ours = fs::read_symlink("/proc/self/fd/1", error);  // such as "pipe:[1234]"
  if (!ours.string().starts_with("pipe:"))
    return false;
  const auto descriptors = fs::directory_iterator{fmt::format("/proc/{}/fd", process), error};
  return std::any_of(begin(descriptors), end(descriptors), [&](const fs::directory_entry& descriptor) {
    const auto mode = descriptor.symlink_status(error).permissions();  // that of the end which is open
    return (mode & fs::perms::owner_read) != fs::perms::none && fs::read_symlink(descriptor.path(), error) == ours;
  });
}

}  // namespace

std::string describe_deadlock(const lock::Owner& holder) try {
  if (!holder.stays || holder.pid <= 0 || holder.host != lock::host_name())
    return "";
  if (holder.for_another) {
    const pid_t process = process_behind(holder.pid);
    return is_ancestor(process)
               ? describe(
                     process,
                     "which has it by --hold-pid",
                     "write eval \"$(rlock acquire ... --output shell || echo exit $?)\" there, and what it starts "
                     "shares its lock")
               : "";
  }
  // Another container may have the same host name, and other processes under the same PIDs: it must be an rlock too.
  if (!is_ancestor(holder.pid) || script_name(holder.pid) != script_name(::getpid()))
    return "";
  return describe(holder.pid,
                  "which holds it",
                  "what it starts shares its lock if it keeps RLOCK_HELD, RLOCK_REDIS and RLOCK_PREFIX");
} catch (const Error&) {
  return "";  // too few descriptors, for example: it is only a hint
}

bool is_command_substitution(pid_t process) try {
  const pid_t shell = process == ::getppid() ? ProcessTable{}.parent_of(process) : 0;
  if (shell <= 0 || command_line(shell) != command_line(process))
    return false;
  // A shell that starts a pipeline can read from its pipes for a moment, too.
  for (int looks = 50; looks > 0; --looks) {
    if (!reads_from_us(shell))
      return false;
    ::poll(nullptr, 0, 10);
  }
  return true;
} catch (const std::exception&) {
  return false;
}

}  // namespace rlock::run
