#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/loop.h"
#include "base/signals.h"
#include "cli/claim.h"
#include "cli/config.h"
#include "cli/enclosing.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
#include "redis/address.h"
#include "run/child.h"
#include "run/keeper.h"
#include "run/report.h"

namespace rlock::cli {
namespace {

/// Variables that are not passed on: they belong to an enclosing run, or are secret. Those that every lock has are
/// replaced once ours is granted.
constexpr std::array<std::string_view, 4> removed{"RLOCK_HELD", "RLOCK_SLOT", "RLOCK_PASSWORD", "REDISCLI_AUTH"};

bool is_removed(std::string_view variable) {
  const auto known = all_options();
  return std::find(removed.begin(), removed.end(), variable) != removed.end() ||
         std::any_of(known.begin(), known.end(), [&](const Option& o) { return o.environment == variable; });
}

/// The command's environment but for the lock's own variables: the caller's without passwords, and the connection.
std::vector<std::string> command_environment(const Settings& settings, const std::string& urls) {
  std::vector<std::string> out = settings.handed_on;
  out.push_back(fmt::format("{}={}", redis_variable, urls));
  out.push_back(fmt::format("{}={}", prefix_variable, settings.prefix));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const std::string_view variable = text.substr(0, text.find('='));
    const bool ours = variable.starts_with("RLOCK_") || variable == "REDISCLI_AUTH";
    if (!ours || !is_removed(variable))
      out.push_back(variable == "REDIS_URL" ? redis::strip_password(text) : std::string{text});
  }
  return out;
}

lock::Owner describe_run(const Settings& settings) {
  const auto& command = settings.command;
  return lock::describe_self(
      settings.holder, settings.note, settings.no_command ? std::vector{command.front()} : command);
}

lock::LeaseTerms fit_lease(const Settings& settings) try {
  return lock::plan_lease({.ttl = settings.lease(),
                           .renew_every = settings.renew_every,
                           .kill_after = settings.kill_after,
                           .timeout = settings.timeout});
} catch (const Error& error) {
  throw placed(settings, {"ttl", "renew-every", "kill-after"}, error);
}

run::Plan make_plan(const Settings& settings, const std::string& urls) {
  const lock::LeaseTerms lease = fit_lease(settings);
  lock::LockName name = choose_lock(settings);
  lock::Patience patience = choose_patience(settings);
  patience.caller_renews = true;
  const std::string held = held_around(settings, urls);
  const lock::Claim claim = choose_claim(settings, describe_run(settings), true);
  std::vector<std::string> environment = command_environment(settings, urls);
  if (!held.empty())
    environment.push_back("RLOCK_HELD=" + held);  // our own lock is added once it is granted
  return {.command = {.file = run::find_command(settings.command.front()),
                      .argv = settings.command,
                      .environment = std::move(environment),
                      .first_signal = settings.first_signal,
                      .kill_after = lease.kill_after,
                      .max_runtime = settings.max_runtime,
                      .at_end = settings.at_end,
                      .ignore_sigchld = settings.ignores_sigchld},
          .name = name,
          .claim = claim,
          .inherited = lock::inherited_token(held, name.text()),
          .lease = lease,
          .max_lease = settings.max_lease,
          .patience = patience,
          .on_lost = settings.on_lost,
          .conflict = settings.conflict};
}

run::Result run_under_lock(const Settings& settings, const Log& log) {
  Loop loop;
  auto servers = choose_servers(loop, settings, log);
  run::Plan plan = make_plan(settings, join_urls(servers));
  check_quorum_times(settings);
  run::Keeper keeper{std::move(plan), log, servers};
  return explaining(settings, "the command was not started", [&] { return keeper.run(); });
}

/// run_under_lock(), with a report of how it ended.
run::Result run_and_report(const Settings& settings, const Log& log) {
  const run::Report report{{.file = *settings.report,
                            .key = settings.keys.empty() ? "" : settings.keys.front(),
                            .slots = settings.slots.value_or(1) > 1},
                           log};
  try {
    run::Result result = run_under_lock(settings, log);
    report.write(result);
    return result;
  } catch (const Error& error) {
    report.write(error);
    throw;
  }
}

}  // namespace

ExitCode run(const Settings& settings) {
  Signals::keep_failed_writes_quiet();
  const Log log{settings.verbosity};
  const run::Result result = settings.report ? run_and_report(settings, log) : run_under_lock(settings, log);
  // A shell script that runs us notices by this that Ctrl-C was typed, and stops too. Process 1 of a container, which
  // is not killed by its own signals, goes on to the status.
  if (result.verdict.die_of != 0)
    raise_unblocked(result.verdict.die_of);
  return ExitCode{result.verdict.exit_status};
}

}  // namespace rlock::cli
