#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "base/error.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/timestamp.h"
#include "cli/commands.h"
#include "cli/enclosing.h"
#include "cli/failure.h"
#include "cli/script_name.h"
#include "cli/session.h"
#include "observe/inspect.h"
#include "run/hold_pid.h"
#include "run/process.h"

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
  const auto now = wall_now();
  const auto left = claim.ttl - time_since(grant.sent);
  const std::optional slot = claim.capacity.value > 1 ? std::optional{grant.slot} : std::nullopt;
  return JsonObject{}
             .add("key", name.text())
             .add("token", token)
             .add("fence", grant.fence.value)
             .add("slot", slot)
             .add("ttl_ms", claim.ttl.count())
             .add("expires_at", format_utc(now + left))
             .add("waited_ms", waited.count())
             .text() +
         "\n";
}

/// The first signal ends the wait; the taker leaves the queue as the exception passes.
void throw_on_signal(Signals& signals, bool& interrupted, const lock::LockName& name) {
  const auto signal = signals.next();
  if (!signal || interrupted)
    return;
  interrupted = true;
  throw Error{killed_by(signal->number),
              fmt::format("interrupted by {} before {} was acquired", signal_name(signal->number), name.text())};
}

/// What to acquire: the lock, who takes it, and for how long.
struct Acquisition {
  lock::LockName name;
  lock::Claim claim;
  lock::Owner owner;
  lock::LeaseTerms lease;
};

Acquisition make_acquisition(const Settings& settings) {
  const pid_t caller = settings.hold_pid.value_or(::getppid());
  lock::Owner owner = lock::describe_self(settings.holder, settings.note, {script_name(caller)});
  owner.stays = settings.hold_pid.has_value();
  const Milliseconds ttl = settings.ttl;
  return {.name = choose_lock(settings, false),
          .claim = choose_claim(settings, owner, ttl, settings.hold_pid.has_value()),
          .owner = owner,
          .lease = {.ttl = ttl}};
}

/// Whether the holders admit nobody who wants the lock in that mode. The first server that answers tells; false if none
/// does.
bool is_closed_to(lock::Capacity wanted,
                  Loop& loop,
                  std::vector<redis::Server>& servers,
                  const lock::LockName& name,
                  Deadline until) {
  if (wanted == lock::exclusive)
    return true;
  for (redis::Server& server : servers) {
    try {
      const observe::LockFacts facts = observe::inspect(loop, server, name, until);
      if (!facts.holders.empty())
        return facts.capacity != wanted;
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable)  // such as a signal
        throw;
    }
  }
  return false;
}

/// Refuses a lock that an enclosing run holds: we would wait for that run to end, and it waits for us.
void refuse_to_wait_for_ourselves(Loop& loop,
                                  lock::Lock& lock,
                                  const Settings& settings,
                                  const Acquisition& acquisition,
                                  std::vector<redis::Server>& servers) {
  const auto token = inherited_token(held_around(settings, join_urls(servers)), acquisition.name.text());
  const bool waits = choose_patience(settings).wait != Milliseconds{0};
  if (!token || !waits)
    return;
  const Deadline until = BootClock::now() + settings.timeout;
  // Renewing by 1 ms extends nothing, and tells whether the token still holds.
  const auto renewal = lock::persist(loop, lock, settings.timeout, until, [&](Deadline deadline) {
    return lock.renew(loop, *token, Milliseconds{1}, deadline);
  });
  const bool is_held = std::holds_alternative<lock::Extended>(renewal);
  if (is_held && is_closed_to(acquisition.claim.capacity, loop, servers, acquisition.name, until)) {
    throw Error{ExitCode::usage,
                fmt::format("{} is held by the run around this command, so acquire would wait for itself: the command "
                            "has the lock already",
                            acquisition.name.text())};
  }
}

/// With --hold-pid: the process that the lock is held for, and the background process that will renew it.
struct HoldPid {
  run::Process process;
  run::Background background;
};

/// Starts the background process, before any descriptor is opened that it could inherit. It becomes the owner that
/// others see, since it is the process to kill.
std::unique_ptr<HoldPid> start_background(const Settings& settings,
                                          Acquisition& acquisition,
                                          std::span<redis::Server> servers) {
  if (!settings.hold_pid)
    return nullptr;
  acquisition.lease = lock::plan_lease(
      {.ttl = acquisition.claim.ttl, .renew_every = {}, .kill_after = {}, .timeout = settings.timeout});
  const run::HoldPlan plan{.name = acquisition.name,
                           .claim = acquisition.claim,
                           .owner = acquisition.owner,
                           .lease = acquisition.lease,
                           .max_lease = settings.max_lease,
                           .timeout = settings.timeout,
                           .signal = settings.first_signal};
  run::Process process = run::Process::open(*settings.hold_pid);
  run::Background background{plan, process, servers};
  acquisition.owner.pid = background.pid();
  acquisition.claim.owner = acquisition.owner.encode();
  return std::make_unique<HoldPid>(HoldPid{std::move(process), std::move(background)});
}

/// Gives back what could not be delivered. A failure is only told, so that it does not hide why we give it back.
void give_back(const Settings& settings, const Acquisition& acquisition, const Log& log, lock::Lock& lock) {
  Loop quiet;  // a signal must not interrupt this
  try {
    lock.cancel(quiet, acquisition.claim, BootClock::now() + settings.timeout);
  } catch (const Error& error) {
    log.notice(fmt::format(
        "could not release {} ({}); its lease will run out by itself", acquisition.name.text(), error.what()));
  }
}

/// Prints the token, then leaves the lock to the background process. If either fails the lock is released, since nobody
/// could use it.
void deliver(const Settings& settings,
             const Acquisition& acquisition,
             const lock::Granted& grant,
             Milliseconds waited,
             const HoldPid* hold_pid,
             const Log& log,
             lock::Lock& lock) {
  try {
    print(format_grant(settings, acquisition.name, acquisition.claim, grant, waited));
    if (hold_pid != nullptr)
      hold_pid->background.entrust(acquisition.claim, grant);
  } catch (const Error&) {
    give_back(settings, acquisition, log, lock);
    throw;
  }
}

/// Makes `eval "$(rlock acquire ...)" || exit` exit with our status, since eval ignores the status of a substitution.
void print_failure(const Settings& settings, int status) {
  if (settings.output == Output::shell)
    print(fmt::format("(exit {})\n", status));
}

/// Returns the exit status.
int take_and_print(const Settings& settings) {
  const Log log{settings.verbosity};
  Acquisition acquisition = make_acquisition(settings);
  auto servers = choose_servers(settings, log);
  check_quorum_times(settings, acquisition.claim.ttl);
  const auto hold_pid = start_background(settings, acquisition, servers);
  lock::Lock lock{servers, acquisition.name, settings.max_lease};
  Loop loop;
  Signals signals{{SIGTERM, SIGINT, SIGHUP, SIGQUIT}};
  bool interrupted = false;
  loop.watch(signals.fd(), [&] { throw_on_signal(signals, interrupted, acquisition.name); });
  if (hold_pid) {
    loop.watch(hold_pid->process.fd(), [&loop, fd = hold_pid->process.fd()] {
      loop.unwatch(fd);  // this must not interrupt the taker while it leaves the queue
      throw Error{ExitCode::usage, "the process that the lock is for has ended"};
    });
  }

  refuse_to_wait_for_ourselves(loop, lock, settings, acquisition, servers);
  const auto start = BootClock::now();
  lock::Taker taker{loop, log, lock, acquisition.claim, acquisition.lease, choose_patience(settings)};
  const auto taken = taker.take();
  acquisition.claim = taker.claim();
  if (const auto* conflict = std::get_if<lock::Conflict>(&taken)) {
    log.notice(fmt::format("{} not acquired: {}", acquisition.name.text(), conflict->message));
    print_failure(settings, static_cast<int>(settings.conflict));
    return static_cast<int>(settings.conflict);
  }
  const auto waited = time_since(start);
  deliver(settings, acquisition, std::get<lock::Granted>(taken), waited, hold_pid.get(), log, lock);
  return 0;
}

}  // namespace

int acquire(const Settings& settings) {
  try {
    return explaining(settings, "nothing was acquired", [&] { return take_and_print(settings); });
  } catch (const Error& error) {
    print_failure(settings, static_cast<int>(error.code()));
    throw;
  }
}

}  // namespace rlock::cli
