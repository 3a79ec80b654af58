#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/signals.h"
#include "base/timestamp.h"
#include "cli/claim.h"
#include "cli/config.h"
#include "cli/enclosing.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "cli/screen.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
#include "lock/retry.h"
#include "lock/taker.h"
#include "lock/wording.h"
#include "observe/facts.h"
#include "run/ancestry.h"
#include "run/background.h"
#include "run/pid_keeper.h"
#include "run/process.h"

namespace rlock::cli {
namespace {

/// The owner. Its command is the script that called us or, with --hold-pid, the one that the lock is held for.
lock::Owner describe_caller(const Settings& settings) {
  const pid_t caller = settings.hold_pid.value_or(::getppid());
  lock::Owner owner = lock::describe_self(settings.holder, settings.note, {run::script_name(caller)});
  owner.stays = owner.for_another = settings.hold_pid.has_value();
  return owner;
}

lock::LeaseTerms choose_lease(const Settings& settings) {
  if (!settings.hold_pid)
    return {.ttl = settings.lease()};
  return lock::plan_lease({.ttl = settings.lease(), .timeout = settings.timeout});
}

/// With --hold-pid: the process that the lock is held for, and the background process that will renew it.
struct HoldPid {
  run::Process process;
  run::Background background;
};

/// Process 1 is usually the system's: no lock is meant for it, and a signal to it would do harm. In a container it may
/// be the script that calls us, and then we are in its session. A lock for rlock itself, or for the $(...) around
/// it, would be released as soon as we exit.
void check_hold_pid(pid_t pid) {
  if (pid == ::getpid())
    throw Error{ExitCode::usage, fmt::format("--hold-pid: process {} is rlock itself", pid)};
  if (run::is_command_substitution(pid))
    throw Error{
        ExitCode::usage,
        fmt::format("--hold-pid: process {} is the subshell of $(...), which ends at once; set p=$BASHPID before "
                    "it, and write --hold-pid $p",
                    pid)};
  if (pid == 1 && ::getsid(0) != ::getsid(1))
    throw Error{ExitCode::usage,
                "--hold-pid: process 1 is not a script that called rlock; write $$ for a shell's own PID"};
}

/// One acquisition, from the settings to the printed token.
class Acquirer {
 public:
  /// Starts the background process; connects to nothing yet.
  explicit Acquirer(const Settings& settings)
      : settings_(settings),
        log_(settings.verbosity),
        name_(choose_lock(settings)),
        claim_(choose_claim(settings, describe_caller(settings), settings.hold_pid.has_value())),
        servers_(choose_voters()),
        lease_(choose_lease(settings)),
        hold_pid_(start_background()),
        lock_(servers_, name_, settings.max_lease),
        signals_({SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    loop_.watch(signals_.fd(), [this] { on_signal(); });
    if (!hold_pid_)
      return;
    claim_.owner.pid = hold_pid_->background.pid();  // others see it as the owner, since it is the process to kill
    loop_.watch(hold_pid_->process.fd(), [this] { on_end_of_process(); });
  }
  Acquirer(const Acquirer&) = delete;
  Acquirer& operator=(const Acquirer&) = delete;

  ExitCode run() {
    refuse_to_wait_for_ourselves();
    const auto start = BootClock::now();
    lock::Taker taker{log_, lock_, claim_, lease_, choose_patience(settings_)};
    const auto taken = taker.take();
    claim_ = taker.claim();
    if (const auto* conflict = std::get_if<lock::Conflict>(&taken))
      return report(*conflict);
    deliver(std::get<lock::Granted>(taken), time_since(start));
    return ExitCode::ok;
  }

 private:
  std::vector<redis::Server> choose_voters() {
    auto servers = choose_servers(loop_, settings_, log_);
    check_quorum_times(settings_);
    return servers;
  }

  std::optional<HoldPid> start_background() {
    if (!settings_.hold_pid)
      return std::nullopt;
    check_hold_pid(*settings_.hold_pid);
    const run::PidPlan plan{.name = name_,
                            .claim = claim_,
                            .lease = lease_,
                            .max_lease = settings_.max_lease,
                            .timeout = settings_.timeout,
                            .signal = settings_.first_signal};
    run::Process process = run::Process::open(*settings_.hold_pid);
    run::Background background = run::Background::start(plan, process, servers_);
    return HoldPid{.process = std::move(process), .background = std::move(background)};
  }

  /// The first signal ends the wait; the taker leaves the queue as the exception passes.
  void on_signal() {
    const auto signal = signals_.next();
    if (!signal || interrupted_)
      return;
    interrupted_ = true;
    throw lock::interrupted(name_, signal->number);
  }

  void on_end_of_process() {
    loop_.unwatch(hold_pid_->process.fd());  // this must not interrupt the taker while it leaves the queue
    throw Error{ExitCode::usage,
                fmt::format("--hold-pid: process {} has ended; nothing was acquired", *settings_.hold_pid)};
  }

  /// Refuses a lock that an enclosing run holds: we would wait for that run to end, and it waits for us.
  void refuse_to_wait_for_ourselves() {
    const auto token = lock::inherited_token(held_around(settings_, join_urls(servers_)), name_.text());
    const bool waits = choose_patience(settings_).wait != Milliseconds{0};
    if (!token || !waits)
      return;
    const Deadline until = BootClock::now() + settings_.timeout;
    // Renewing by 1 ms extends nothing, and tells whether the token still holds.
    const auto renewal = lock::persist(lock_, settings_.timeout, until, [&](Deadline deadline) {
      return lock_.renew(*token, Milliseconds{1}, deadline);
    });
    if (std::holds_alternative<lock::Extended>(renewal) && is_closed_to_us(until)) {
      throw Error{
          ExitCode::usage,
          fmt::format("{} is held by the run or the script around this command, so acquire would wait in vain; leave "
                      "out acquire and release here, or write `rlock run`, which shares the lock",
                      name_.text())};
    }
  }

  /// Whether the holders admit nobody who wants the lock in our mode. The first server that answers tells; false if
  /// none does.
  bool is_closed_to_us(Deadline until) {
    if (claim_.capacity == lock::exclusive)
      return true;
    for (redis::Server& server : servers_) {
      try {
        const observe::LockFacts facts = observe::inspect(server, name_, until);
        if (!facts.holders.empty())
          return facts.capacity != claim_.capacity;
      } catch (const Error& error) {
        if (error.code() != ExitCode::unavailable)  // such as a signal
          throw;
      }
    }
    return false;
  }

  ExitCode report(const lock::Conflict& conflict) const {
    log_.notice(fmt::format("{} not acquired: {}", name_.text(), conflict.message));
    if (settings_.output == Output::shell && settings_.conflict == ExitCode::ok)
      print("exit 0\n");  // to the script our status says that all is well
    return settings_.conflict;
  }

  std::string format_grant(const lock::Granted& grant, Milliseconds waited) const {
    switch (settings_.output) {
      case Output::token:
        return claim_.token.text() + "\n";
      case Output::shell:
        return format_exports(grant);
      case Output::json:
        break;
    }
    const auto now = wall_now();
    const auto left = claim_.ttl - time_since(grant.sent);
    const std::optional slot = claim_.capacity.value > 1 ? std::optional{grant.slot} : std::nullopt;
    return JsonObject{}
               .add("key", name_.text())
               .add("token", claim_.token.text())
               .add("fence", grant.fence.value)
               .add("slot", slot)
               .add("ttl_ms", claim_.ttl.count())
               .add("expires_at", format_utc(now + left))
               .add("waited_ms", waited.count())
               .text() +
           "\n";
  }

  /// Assignments for a script's `eval`. With them `rlock run` of this lock re-enters it, as inside `run`.
  std::string format_exports(const lock::Granted& grant) const {
    const std::string urls = join_urls(servers_);
    std::string out = fmt::format(
        "export RLOCK_KEY={} RLOCK_TOKEN={} RLOCK_FENCE={} RLOCK_TTL_MS={} RLOCK_HELD={} {}={}",
        shell_word(name_.text()),
        claim_.token.text(),
        grant.fence.value,
        claim_.ttl.count(),
        shell_word(lock::held_with(held_around(settings_, urls), lock::held_entry(name_.text(), claim_.token))),
        prefix_variable,
        shell_word(settings_.prefix));
    // Where the environment names these servers with a password, the script keeps what it has.
    if (!names_servers(urls) || from_environment(redis_variable) == urls)
      out += fmt::format(" {}={}", redis_variable, shell_word(urls));
    if (claim_.capacity.value > 1)
      out += fmt::format(" RLOCK_SLOT={}", grant.slot);
    else if (from_environment("RLOCK_SLOT"))
      out += "; unset RLOCK_SLOT";  // another lock's
    return out + "\n";
  }

  /// Prints the token, then leaves the lock to the background process. If either fails the lock is released, since
  /// nobody could use it.
  void deliver(const lock::Granted& grant, Milliseconds waited) {
    try {
      print(format_grant(grant, waited));
      if (hold_pid_)
        hold_pid_->background.entrust(claim_, grant);
    } catch (...) {
      lock::give_back(lock_, claim_, settings_.timeout, log_);
      throw;
    }
  }

  // The order matters. The background process gets a copy of our memory but none of our descriptors, so whatever opens
  // any stands after it. So do the signals that we block, since TERM must end it while it waits for the grant.
  const Settings& settings_;
  const Log log_;
  const lock::LockName name_;
  lock::Claim claim_;
  Loop loop_;
  std::vector<redis::Server> servers_;
  const lock::LeaseTerms lease_;
  const std::optional<HoldPid> hold_pid_;
  lock::Lock lock_;
  Signals signals_;
  bool interrupted_ = false;
};

}  // namespace

ExitCode acquire(const Settings& settings) {
  return explaining(settings, "nothing was acquired", [&] { return Acquirer{settings}.run(); });
}

}  // namespace rlock::cli
