#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "lock/conflict.h"
#include "lock/retry.h"

namespace rlock::cli {
namespace {

int say_not_held(const Log& log, const std::string& message) {
  log.notice(message);
  return static_cast<int>(ExitCode::not_holder);
}

/// Prints whom it evicted.
int report(const lock::LockName& name, const lock::Forced& forced, const Log& log) {
  if (const auto* foreign = std::get_if<lock::ForeignKey>(&forced)) {
    print(fmt::format("{}: deleted another program's key ({} \"{}\")\n",
                      printable(name.text()),
                      printable(foreign->type),
                      printable(foreign->value)));
    return 0;
  }
  const auto& evicted = std::get<std::vector<lock::Owner>>(forced);
  if (evicted.empty())
    return say_not_held(log, fmt::format("{} is not held so; nothing changed", name.text()));
  for (const lock::Owner& owner : evicted) {
    print(fmt::format("{}: evicted {}\n", printable(name.text()), printable(lock::describe(owner))));
  }
  return 0;
}

void check_options(const Settings& settings) {
  if (settings.force && settings.token)
    throw Error{ExitCode::usage, "--force and --token: choose one"};
  if (settings.fence && !settings.force)
    throw Error{ExitCode::usage, "--fence goes with --force"};
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
  if (settings.force) {
    return report(name, persist([&](Deadline d) { return lock.force(loop, settings.fence, d); }), log);
  }
  const lock::Token token = choose_token(settings);
  const auto outcome = persist([&](Deadline d) { return lock.release_all(loop, token, d); });
  if (outcome == lock::Release::lost) {
    return say_not_held(log, fmt::format("{} is not held by this token any more", name.text()));
  }
  return 0;
}

}  // namespace rlock::cli
