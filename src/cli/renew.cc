#include <fmt/format.h>

#include "base/loop.h"
#include "cli/claim.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
#include "lock/lock.h"
#include "lock/retry.h"
#include "lock/wording.h"

namespace rlock::cli {

ExitCode renew(const Settings& settings) {
  const Log log{settings.verbosity};
  const lock::LockName name = choose_held_lock(settings);
  const Milliseconds ttl = settings.ttl;
  Loop loop;
  auto servers = choose_servers(loop, settings, log);
  const lock::Token token = choose_token(settings, name, servers, "; `rlock acquire` prints one");
  check_quorum_times(settings);
  lock::Lock lock{servers, name, settings.max_lease};
  const Deadline give_up = BootClock::now() + settings.timeout;
  const std::string_view done = "the lease may have been extended all the same";
  const auto renewal = explaining(settings, lock, "the lease was not extended", done, [&] {
    return lock::persist(
        lock, settings.timeout, give_up, [&](Deadline deadline) { return lock.renew(token, ttl, deadline); });
  });
  if (std::holds_alternative<lock::Extended>(renewal))
    return ExitCode::ok;
  if (const auto* evicted = std::get_if<lock::Evicted>(&renewal)) {
    log.error(fmt::format("{} is not renewed: its holder was {}", name.text(), lock::describe(evicted->eviction)));
    return ExitCode::negative;
  }
  return say_not_held(lock, token, servers, settings, give_up, log);
}

}  // namespace rlock::cli
