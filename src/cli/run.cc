#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/escape.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/session.h"
#include "run/child.h"
#include "run/keeper.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every unistd.h

namespace rlock::cli {
namespace {

/// Of an enclosing run, or of the caller's, and not the command's: replaced, or meaningless to it.
constexpr std::array<std::string_view, 7> replaced{"RLOCK_KEY=",    "RLOCK_TOKEN=",  "RLOCK_FENCE=", "RLOCK_HELD=",
                                                   "RLOCK_TTL_MS=", "RLOCK_SLOT=",   "RLOCK_PASSWORD="};

/// The environment that the command gets before the lock is known: the caller's without passwords, and the connection.
std::vector<std::string> command_environment(const Settings& settings, const redis::Address& server) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const auto starts = [text](std::string_view name) { return text.starts_with(name); };
    if (std::any_of(replaced.begin(), replaced.end(), starts) || starts("RLOCK_REDIS=") || starts("RLOCK_PREFIX=")) {
      continue;
    }
    if (starts("REDIS_URL=")) {
      out.push_back("REDIS_URL=" + redis::strip_password(text.substr(text.find('=') + 1)));
    } else if (!starts("RLOCK_PASSWORD_FILE=")) {
      out.emplace_back(text);
    }
  }
  out.push_back("RLOCK_REDIS=" + server.bare_url);
  out.push_back("RLOCK_PREFIX=" + settings.prefix);
  const std::string& file = server.credentials.password_file;
  if (!file.empty()) out.push_back("RLOCK_PASSWORD_FILE=" + file);
  return out;
}

/// RLOCK_HELD, if the enclosing runs lock on the same server and under the same prefix as this one.
std::string held_around(const Settings& settings, const redis::Address& server) {
  const bool same = from_environment("RLOCK_REDIS") == server.bare_url &&
                    from_environment("RLOCK_PREFIX").value_or("") == settings.prefix;
  return same ? from_environment("RLOCK_HELD").value_or("") : "";
}

/// The token with which an enclosing run holds this lock. Malformed entries are passed over: nothing is decided by them.
std::optional<lock::Token> inherited_token(std::string_view held, const std::string& name) {
  while (!held.empty()) {
    const auto space = held.find(' ');
    const std::string_view entry = held.substr(0, space);
    const auto equals = entry.find('=');
    if (equals != std::string_view::npos && percent_decode(entry.substr(0, equals)) == name) {
      return lock::Token::parse(entry.substr(equals + 1));
    }
    held.remove_prefix(space == std::string_view::npos ? held.size() : space + 1);
  }
  return std::nullopt;
}

/// SIGCHLD ignored, as some callers leave it, would take our children's statuses from us.
bool reset_sigchld() { return ::signal(SIGCHLD, SIG_DFL) == SIG_IGN; }

run::Plan make_plan(const Settings& settings, std::vector<std::string> command, const redis::Address& server) {
  const lock::LeaseTerms lease = lock::plan_lease({.ttl = settings.ttl.value_or(Milliseconds{30'000}),
                                                   .renew_every = settings.renew_every,
                                                   .kill_after = settings.kill_after,
                                                   .timeout = settings.timeout});
  lock::LockName name = choose_lock(settings, false);
  const std::string held = held_around(settings, server);
  const lock::Claim claim{.token = lock::Token::random(),
                          .level = lock::Level::random(),
                          .capacity = choose_capacity(settings),
                          .ttl = lease.ttl,
                          .min_hold = settings.min_hold,
                          .owner = lock::describe_self(settings.holder, settings.note, command).encode()};
  return {.command = {.argv = std::move(command),
                      .environment = command_environment(settings, server),
                      .first_signal = settings.first_signal,
                      .kill_after = lease.kill_after,
                      .max_runtime = settings.max_runtime,
                      .ignore_sigchld = reset_sigchld()},
          .name = name,
          .claim = claim,
          .inherited = inherited_token(held, name.text()),
          .lease = lease,
          .patience = choose_patience(settings),
          .on_lost = settings.on_lost,
          .conflict = settings.conflict,
          .held_around = held};
}

/// As the command did, so that a shell that runs us in a script sees the Ctrl-C and stops too. Returns where that does
/// not work: process 1 of a container is not killed by its own signals.
void die_of(int number) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, number);
  ::raise(number);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

int run(const Settings& settings, std::vector<std::string> command) {
  const Log log{settings.verbosity};
  const redis::Address server = choose_server(settings, log);
  run::Plan plan = make_plan(settings, std::move(command), server);
  run::check_command(plan.command.argv.front());
  redis::Connection connection{server};
  run::Keeper keeper{std::move(plan), log, connection};
  const run::Result result = keeper.run();
  if (result.verdict.die_of != 0) die_of(result.verdict.die_of);
  return result.verdict.exit_status;
}

}  // namespace rlock::cli
