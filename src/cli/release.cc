#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/force.h"
#include "cli/session.h"
#include "lock/conflict.h"
#include "lock/retry.h"

namespace rlock::cli {
namespace {

int say_not_held(const Log& log, const std::string& message) {
  log.notice(message);
  return static_cast<int>(ExitCode::negative);
}

/// Describes who has the lock instead of the token.
std::string describe_instead(Loop& loop, lock::Lock& lock, const lock::Token& token, Deadline deadline) {
  const lock::Forced found = lock.look(loop, deadline);
  if (std::holds_alternative<lock::ForeignKey>(found))
    return "another program's key is there";
  const auto& targets = std::get<std::vector<lock::Target>>(found);
  if (!targets.empty()) {
    const bool cooling = targets[0].state == lock::Target::State::cooling;
    return fmt::format("{} {} with fence {}",
                       cooling ? "cooling after" : "held by",
                       lock::describe(targets[0].owner),
                       targets[0].fence.value);
  }
  const lock::Claim claim{
      .token = token, .level = lock::Level::random(), .capacity = lock::exclusive, .ttl{}, .owner{}};
  return lock.recall(loop, claim, deadline) ? "it was released already" : "it is free, since the lease has ended";
}

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

/// Returns the exit status.
int give_up_or_force(const Settings& settings) {
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
  if (outcome != lock::Release::lost)
    return 0;
  const std::string message = fmt::format("{} is not held by this token any more", name.text());
  try {
    const auto instead = persist([&](Deadline d) { return describe_instead(loop, lock, token, d); });
    return say_not_held(log, fmt::format("{}: {}", message, instead));
  } catch (const Error&) {
    return say_not_held(log, message);  // only the explanation failed
  }
}

}  // namespace

int release(const Settings& settings) {
  return explaining(settings, "nothing was released", [&] { return give_up_or_force(settings); });
}

}  // namespace rlock::cli
