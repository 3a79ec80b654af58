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

/// Takes the lock from those whom it finds, and prints who they were. The fences are named, so that a repetition does
/// no harm to who comes next.
int force(const Settings& settings, const lock::LockName& name, lock::Lock& lock, Loop& loop, const Log& log) {
  const Deadline give_up = BootClock::now() + settings.timeout;
  const auto persist = [&](auto attempt) { return lock::persist(loop, lock, settings.timeout, give_up, attempt); };
  const lock::Forced found = persist([&](Deadline d) { return lock.look(loop, d); });
  if (const auto* foreign = std::get_if<lock::ForeignKey>(&found); foreign != nullptr && !settings.fence) {
    persist([&](Deadline d) { return lock.delete_foreign(loop, d); });
    print(fmt::format("{}: deleted another program's key ({} \"{}\")\n",
                      printable(name.text()),
                      printable(foreign->type),
                      printable(foreign->value)));
    return 0;
  }
  std::vector<lock::Fence> fences;
  if (const auto* targets = std::get_if<std::vector<lock::Target>>(&found)) {
    for (const lock::Target& target : *targets) {
      if (!settings.fence || target.fence == *settings.fence)
        fences.push_back(target.fence);
    }
  }
  if (fences.empty())
    return say_not_held(log, fmt::format("{} is not held so; nothing changed", name.text()));
  const lock::Owner self = lock::describe_self({}, {}, {});
  const auto forced = persist([&](Deadline d) { return lock.force(loop, lock::Force::now, self, fences, d); });
  for (const lock::Target& target : forced) {
    if (target.state == lock::Target::State::removed)
      print(fmt::format("{}: evicted {}\n", printable(name.text()), printable(lock::describe(target.owner))));
  }
  return 0;
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
    return force(settings, name, lock, loop, log);
  const lock::Token token = choose_token(settings);
  const lock::Level request = lock::Level::random();
  const auto outcome = persist([&](Deadline d) { return lock.release_all(loop, token, request, d); });
  if (outcome == lock::Release::lost) {
    return say_not_held(log, fmt::format("{} is not held by this token any more", name.text()));
  }
  return 0;
}

}  // namespace rlock::cli
