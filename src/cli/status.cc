#include <algorithm>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/table.h"
#include "lock/inspect.h"
#include "lock/retry.h"

namespace rlock::cli {

int status(const Settings& settings) {
  const Log log{settings.verbosity};
  std::vector<lock::LockName> names;
  for (const std::string& key : settings.keys) names.emplace_back(settings.prefix, key);
  auto servers = choose_servers(settings, log, lock::listing_limits);
  redis::Server& server = servers.front();
  Loop loop;
  const Deadline give_up = BootClock::now() + settings.timeout;
  const auto locks = lock::persist(loop, server, settings.timeout, give_up, [&](Deadline) {
    if (settings.keys.empty())
      names = lock::list_locks(loop, server, settings.prefix, settings.timeout);
    return lock::inspect(loop, server, names, settings.timeout);
  });
  print(settings.json ? format_json(locks) : format_table(locks));
  const bool some_free =
      std::any_of(locks.begin(), locks.end(), [](const lock::LockFacts& l) { return l.state == lock::State::free; });
  return static_cast<int>(!settings.keys.empty() && some_free ? ExitCode::not_holder : ExitCode::ok);
}

}  // namespace rlock::cli
