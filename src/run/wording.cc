#include "run/wording.h"

#include <fmt/format.h>

#include <cstring>

namespace rlock::run {

std::string describe_failure(const News& news, const Plan& plan) {
  const char* reason = ::strerror(news.value);
  if (news.kind == News::Kind::blind)
    return "/proc is missing or shows another PID namespace, so the command's processes could not be found and killed: "
           "mount it (mount -t proc proc /proc)";
  if (news.kind == News::Kind::failed)
    return fmt::format("cannot start a process for the command: {}", reason);
  if (news.kind == News::Kind::too_late)
    return fmt::format("lost {} before its command was started", plan.name.text());
  return fmt::format("cannot run {}: {}", plan.command.argv.front(), reason);
}

std::string describe(const Survivors& survivors) {
  std::string pids;
  for (const pid_t pid : survivors.some) {
    if (pid > 0)
      pids += fmt::format("{}{}", pids.empty() ? " (pid " : ", ", pid);
  }
  if (!pids.empty())
    pids += static_cast<std::size_t>(survivors.count) > survivors.some.size() ? ", ...)" : ")";
  return fmt::format("{} process{}{}", survivors.count, survivors.count == 1 ? "" : "es", pids);
}

}  // namespace rlock::run
