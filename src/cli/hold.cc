#include "cli/hold.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/escape.h"
#include "base/loop.h"
#include "base/timestamp.h"
#include "cli/claim.h"
#include "cli/config.h"
#include "cli/failure.h"
#include "cli/screen.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
#include "cli/value.h"
#include "lock/retry.h"
#include "lock/wording.h"
#include "observe/survey.h"

namespace rlock::cli {
namespace {

lock::Owner describe_user(const Settings& settings, const std::string& note) {
  lock::Owner user = lock::describe_self(settings.holder, note, {});
  user.stays = false;
  return user;
}

/// Returns whether the lock was on hold.
bool end_hold(const Settings& settings, lock::Lock& lock, const Log& log) {
  const lock::Level request = lock::Level::random();
  const lock::Owner user = describe_user(settings, settings.note);
  const auto ended =
      lock::persist(lock, settings.timeout, [&](Deadline deadline) { return lock.end_hold(user, request, deadline); });
  const std::string& name = lock.name().text();
  if (ended)
    print(printable(fmt::format("{}: hold ended; it was {}", name, lock::describe(*ended))) + "\n");
  else
    log.notice(fmt::format("{} is not on hold; nothing changed", name));
  return ended.has_value();
}

/// Whether it is the run or the script around this command that holds the lock.
bool is_around_us(const observe::LockFacts& lock, const observe::HolderFacts& holder) {
  return from_environment("RLOCK_KEY") == lock.name && from_environment("RLOCK_FENCE") == holder.fence.text();
}

/// Tells what the user may not expect of a lock that was put on hold: that nobody has heard of it, or that another
/// holds it.
void remark_on(const observe::LockFacts& lock, const Settings& settings, const Log& log) {
  if (observe::is_unheard_of(lock))
    log.notice(fmt::format("{}: {}", lock.name, unheard_of));
  std::vector<const observe::HolderFacts*> holders;
  for (const observe::HolderFacts& holder : lock.holders) {
    if (holder.holds() && !is_around_us(lock, holder))
      holders.push_back(&holder);
  }
  if (holders.empty())
    return;
  const std::size_t others = holders.size() - 1;
  log.notice(fmt::format("{}: still held by {}{}; to make {} give the lock up: {}",
                         lock.name,
                         lock::describe(holders[0]->owner),
                         others == 0 ? "" : fmt::format(" and {} more", others),
                         others == 0 ? "it" : "the first",
                         command_to_break(settings, lock.name, holders[0]->fence)));
}

/// Checks all names before any lock is put on hold.
std::vector<lock::LockName> choose_names(const Settings& settings) {
  if (settings.keys.empty())
    throw Error{ExitCode::usage, "no key; write it after the subcommand"};
  std::vector<lock::LockName> names;
  for (const std::string& key : settings.keys) {
    names.emplace_back(settings.prefix, key, settings.key_origin);
    if (is_pattern(settings, key))
      throw Error{
          ExitCode::usage,
          fmt::format("{}: hold takes the name of each lock, not a pattern, since it also holds locks that nobody has "
                      "used yet; for a lock with that name write --key",
                      key)};
  }
  return names;
}

/// What to write, also where the last of several locks is named like a duration or a time.
std::string ask_for_end(const Settings& settings) {
  const std::string& last = settings.keys.empty() ? "" : settings.keys.back();
  if (settings.keys.size() > 1 && !meant_duration(last).empty())
    return fmt::format("for how long? Write --for {}", meant_duration(last));
  if (settings.keys.size() > 1 && parse_time_to_come(last, wall_now()))
    return fmt::format("for how long? Write --until {}", visible_shell_word(last));
  return "for how long? Write --for D, --until TIME, or --end to end a hold";
}

/// What a failure has left undone, or may have.
std::string describe_undone(const Settings& settings, const lock::Lock& lock, const Error& error) {
  if (!may_be_done(lock, error))
    return settings.end ? "no hold was ended" : "nothing was put on hold";
  const std::string key = lock_words(settings, lock.name().text());
  return settings.end
             ? fmt::format("the hold may have ended all the same: rlock status {}", key)
             : fmt::format("it may be on hold all the same: rlock status {0}; rlock hold {0} --end ends that", key);
}

ExitCode hold_or_end(const Settings& settings, lock::Lock& lock, std::vector<redis::Server>& servers, const Log& log) {
  bool is_on_hold = false;
  try {
    if (settings.end)
      return end_hold(settings, lock, log) ? ExitCode::ok : ExitCode::negative;
    put_on_hold(settings, settings.note, lock);
    is_on_hold = true;
    const observe::Scope scope{.prefix = settings.prefix, .names = {lock.name()}};
    for (const auto& found : observe::survey(servers, scope, settings.timeout)) remark_on(found, settings, log);
    return ExitCode::ok;
  } catch (const Error& error) {
    throw with_context(
        error, settings, lock.name().text(), is_on_hold ? "it is on hold" : describe_undone(settings, lock, error));
  }
}

}  // namespace

void put_on_hold(const Settings& settings, const std::string& note, lock::Lock& lock) {
  const lock::Level request = lock::Level::random();
  const lock::Owner user = describe_user(settings, note);
  const auto made = lock::persist(lock, settings.timeout, [&](Deadline deadline) {
    return lock.hold(*settings.hold_end, user, request, deadline);
  });
  const std::string remark = made.replaced          ? fmt::format("; it was {}", lock::describe(*made.replaced))
                             : made.hold.by != user ? "; it stays, since it lasts longer"
                                                    : std::string{};
  print(printable(fmt::format("{}: {}{}", lock.name().text(), lock::describe(made.hold), remark)) + "\n");
}

ExitCode hold(const Settings& settings) {
  const Log log{settings.verbosity};
  const auto names = choose_names(settings);
  if (!settings.end && !settings.hold_end)
    throw Error{ExitCode::usage, ask_for_end(settings)};
  Loop loop;
  auto servers = choose_servers(loop, settings, log, observe::listing_limits);
  ExitCode status = ExitCode::ok;
  for (const lock::LockName& name : names) {
    lock::Lock lock{servers, name, settings.max_lease};
    status = std::max(status, hold_or_end(settings, lock, servers, log));
  }
  return status;
}

}  // namespace rlock::cli
