#include <fmt/format.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/session.h"
#include "lock/retry.h"

namespace rlock::cli {

int renew(const Settings& settings) {
  const Log log{settings.verbosity};
  const lock::LockName name = choose_lock(settings, true);
  const lock::Token token = choose_token(settings);
  const Milliseconds ttl = settings.ttl.value_or(Milliseconds{30'000});
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
  log.notice(fmt::format("{} is not held by this token any more", name.text()));
  return static_cast<int>(ExitCode::negative);
}

}  // namespace rlock::cli
