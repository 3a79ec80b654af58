#include <fmt/format.h>

#include "base/loop.h"
#include "cli/claim.h"
#include "cli/config.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
#include "lock/lock.h"
#include "lock/retry.h"
#include "lock/wording.h"

namespace rlock::cli {
namespace {

/// Where no lease is given, it is the one with which the enclosing run or script has taken this lock.
Settings with_lease_of(const lock::LockName& name, Settings settings) {
  const auto lease = from_environment("RLOCK_TTL_MS");
  if (!settings.ttl && lease && from_environment("RLOCK_KEY") == name.text())
    find_option("ttl")->set(settings, Value{.text = *lease + "ms", .origin = "RLOCK_TTL_MS"});
  return settings;
}

}  // namespace

ExitCode renew(const Settings& given) {
  const Log log{given.verbosity};
  const lock::LockName name = choose_held_lock(given);
  const Settings settings = with_lease_of(name, given);
  Loop loop;
  auto servers = choose_servers(loop, settings, log);
  const lock::Token token = choose_token(settings, name, servers, "; `rlock acquire` prints one");
  check_quorum_times(settings);
  lock::Lock lock{servers, name, settings.max_lease};
  const Deadline give_up = BootClock::now() + settings.timeout;
  const std::string_view done = "the lease may have been extended all the same";
  const auto renewal = explaining(settings, lock, "the lease was not extended", done, [&] {
    return lock::persist(lock, settings.timeout, give_up, [&](Deadline deadline) {
      return lock.renew(token, settings.lease(), deadline);
    });
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
