#include <algorithm>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/table.h"
#include "lock/survey.h"

namespace rlock::cli {

int status(const Settings& settings) {
  const Log log{settings.verbosity};
  lock::Scope scope{.prefix = settings.prefix, .names = {}};
  for (const std::string& key : settings.keys) scope.names.emplace_back(settings.prefix, key);
  auto servers = choose_servers(settings, log, lock::listing_limits);
  Loop loop;
  const auto locks = lock::survey(loop, servers, scope, settings.timeout);
  print(settings.json ? format_json(locks) : format_table(locks));
  const bool some_free =
      std::any_of(locks.begin(), locks.end(), [](const lock::LockFacts& l) { return l.state == lock::State::free; });
  return static_cast<int>(!settings.keys.empty() && some_free ? ExitCode::not_holder : ExitCode::ok);
}

}  // namespace rlock::cli
