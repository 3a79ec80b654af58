#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/timestamp.h"
#include "cli/commands.h"
#include "cli/session.h"

namespace rlock::cli {
namespace {

std::string format_grant(const Settings& settings,
                         const lock::LockName& name,
                         const lock::Claim& claim,
                         const lock::Granted& grant,
                         Milliseconds waited) {
  const std::string& token = claim.token.text();
  switch (settings.output) {
    case Output::token:
      return token + "\n";
    case Output::shell:
      return fmt::format(
          "export RLOCK_KEY={} RLOCK_TOKEN={} RLOCK_FENCE={}\n", shell_word(name.text()), token, grant.fence.value);
    case Output::json:
      break;
  }
  const auto now = std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now());
  const auto left = claim.ttl - std::chrono::duration_cast<Milliseconds>(BootClock::now() - grant.sent);
  const std::string slot = claim.capacity.value > 1 ? std::to_string(grant.slot) : "null";
  return fmt::format(R"({{"key":{},"token":"{}","fence":{},"slot":{},"ttl_ms":{},"expires_at":"{}","waited_ms":{}}})"
                     "\n",
                     json_string(name.text()),
                     token,
                     grant.fence.value,
                     slot,
                     claim.ttl.count(),
                     format_utc(now + left),
                     waited.count());
}

/// A signal ends the wait; the queue is left on the way out.
void throw_on_signal(Signals& signals, bool& interrupted) {
  const auto signal = signals.next();
  if (!signal || interrupted)
    return;
  interrupted = true;
  throw Error{killed_by(signal->number), fmt::format("interrupted by {}", signal_name(signal->number))};
}

}  // namespace

int acquire(const Settings& settings) {
  const Log log{settings.verbosity};
  const lock::LockName name = choose_lock(settings, false);
  const lock::Claim claim{.token = lock::Token::random(),
                          .level = lock::Level::random(),
                          .capacity = choose_capacity(settings),
                          .ttl = settings.ttl.value_or(Milliseconds{30'000}),
                          .min_hold = settings.min_hold,
                          .owner = lock::describe_self(settings.holder, settings.note, {}).encode()};
  auto servers = choose_servers(settings, log);
  check_quorum_lease(settings, claim.ttl, servers.size());
  lock::Lock lock{servers, name, settings.max_lease};
  Loop loop;
  Signals signals{{SIGTERM, SIGINT, SIGHUP, SIGQUIT}};
  bool interrupted = false;
  loop.watch(signals.fd(), [&] { throw_on_signal(signals, interrupted); });

  const auto start = BootClock::now();
  const lock::Patience patience = choose_patience(settings);
  const auto taken = lock::Queue{loop, log, lock, claim, patience}.take(claim.ttl - claim.ttl / 100);
  if (const auto* conflict = std::get_if<lock::Conflict>(&taken)) {
    log.notice(fmt::format("{} not acquired: {}", name.text(), conflict->message));
    return static_cast<int>(settings.conflict);
  }
  const auto waited = std::chrono::duration_cast<Milliseconds>(BootClock::now() - start);
  try {
    print(format_grant(settings, name, claim, std::get<lock::Granted>(taken), waited));
  } catch (const Error&) {
    // A lock whose token nobody knows would only run out.
    (void)lock.release(loop, claim, std::nullopt, BootClock::now() + settings.timeout);
    throw;
  }
  return 0;
}

}  // namespace rlock::cli
