#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/force.h"
#include "cli/session.h"
#include "lock/conflict.h"
#include "lock/retry.h"

namespace rlock::cli {
namespace {

int say_not_held(const Log& log, const std::string& message) {
  log.notice(message);
  return static_cast<int>(ExitCode::not_holder);
}

void check_options(const Settings& settings) {
  if (settings.force)
    return;
  for (const auto& [given, option] : {std::pair{settings.fence.has_value(), "--fence"},
                                      std::pair{settings.now, "--now"},
                                      std::pair{settings.wait.has_value(), "--wait"}}) {
    if (given)
      throw Error{ExitCode::usage, fmt::format("{} goes with --force", option)};
  }
}

}  // namespace

int release(const Settings& settings) {
  const Log log{settings.verbosity};
  check_options(settings);
  const lock::LockName name = choose_lock(settings, true);
  auto servers = choose_servers(settings, log);
  lock::Lock lock{servers, name, settings.max_lease};
  Loop loop;
  const Deadline give_up = BootClock::now() + settings.timeout;
  const auto persist = [&](auto attempt) { return lock::persist(loop, lock, settings.timeout, give_up, attempt); };
  if (settings.force)
    return force_release(settings, lock, log);
  const lock::Token token = choose_token(settings);
  const lock::Level request = lock::Level::random();
  const auto outcome = persist([&](Deadline d) { return lock.release_all(loop, token, request, d); });
  if (outcome == lock::Release::lost) {
    return say_not_held(log, fmt::format("{} is not held by this token any more", name.text()));
  }
  return 0;
}

}  // namespace rlock::cli
