#include <fmt/format.h>

#include "base/error.h"
#include "base/loop.h"
#include "cli/claim.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/force.h"
#include "cli/not_held.h"
#include "cli/servers.h"
#include "lock/lock.h"
#include "lock/retry.h"
#include "observe/listing.h"

namespace rlock::cli {
namespace {

void check_options(const Settings& settings) {
  if (settings.force)
    return;
  for (const auto& [given, option] : {std::pair{settings.fence.has_value(), "--fence"},
                                      std::pair{settings.now, "--now"},
                                      std::pair{settings.wait.has_value(), "--wait"}}) {
    if (given)
      throw Error{ExitCode::usage, fmt::format("{} needs --force", option)};
  }
}

ExitCode give_up_or_force(const Settings& settings) {
  const Log log{settings.verbosity};
  check_options(settings);
  const lock::LockName name = choose_held_lock(settings);
  auto servers = choose_servers(settings, log, observe::listing_limits);  // --force lists all holders
  lock::Lock lock{servers, name, settings.max_lease};
  Loop loop;
  const Deadline give_up = BootClock::now() + settings.timeout;
  if (settings.force)
    return force_release(settings, lock, log);
  const lock::Token token = choose_token(settings);
  const lock::Level request = lock::Level::random();
  const auto outcome = lock::persist(loop, lock, settings.timeout, give_up, [&](Deadline deadline) {
    return lock.release_all(loop, token, request, deadline);
  });
  if (outcome != lock::Release::lost)
    return ExitCode::ok;
  return say_not_held(loop, lock, token, settings.timeout, give_up, log);
}

}  // namespace

ExitCode release(const Settings& settings) {
  return explaining(settings, "nothing was released", [&] { return give_up_or_force(settings); });
}

}  // namespace rlock::cli
