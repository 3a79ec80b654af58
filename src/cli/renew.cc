#include <fmt/format.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/not_held.h"
#include "cli/session.h"
#include "lock/conflict.h"
#include "lock/retry.h"

namespace rlock::cli {

int renew(const Settings& settings) {
  const Log log{settings.verbosity};
  const lock::LockName name = choose_lock(settings, true);
  const lock::Token token = choose_token(settings);
  const Milliseconds ttl = settings.ttl;
  auto servers = choose_servers(settings, log);
  check_quorum_times(settings, ttl);
  lock::Lock lock{servers, name, settings.max_lease};
  Loop loop;
  const Deadline give_up = BootClock::now() + settings.timeout;
  const auto renewal = explaining(settings, "the lease was not extended", [&] {
    return lock::persist(loop, lock, settings.timeout, give_up, [&](Deadline deadline) {
      return lock.renew(loop, token, ttl, deadline);
    });
  });
  if (std::holds_alternative<lock::Extended>(renewal))
    return 0;
  if (const auto* evicted = std::get_if<lock::Evicted>(&renewal)) {
    log.notice(fmt::format("{} is not renewed: its holder was {}", name.text(), lock::describe(evicted->eviction)));
    return static_cast<int>(ExitCode::negative);
  }
  return say_not_held(loop, lock, token, settings.timeout, give_up, log);
}

}  // namespace rlock::cli
