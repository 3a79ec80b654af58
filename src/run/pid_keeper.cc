#include "run/pid_keeper.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "lock/retry.h"
#include "lock/wording.h"

namespace rlock::run {
namespace {

std::string describe_loss(const Renewer& renewer) {
  if (renewer.state() == Renewer::State::evicted)
    return lock::describe(renewer.eviction());
  return renewer.state() == Renewer::State::held ? "the lease could not be renewed in time" : "the lock is lost";
}

}  // namespace

PidKeeper::PidKeeper(HoldPlan plan, const Process& process, std::span<redis::Server> servers)
    : plan_(std::move(plan)),
      process_(&process),
      signals_({SIGTERM, SIGINT, SIGHUP, SIGQUIT}),
      lock_(servers, plan_.name, plan_.max_lease) {
  plan_.claim.owner.pid = ::getpid();
  loop_.watch(process.fd(), [this] {
    process_has_ended_ = true;
    loop_.unwatch(process_->fd());
  });
  // Whoever sends us a signal wants the job to end, as with `run`. The lock is released when it has ended.
  loop_.watch(signals_.fd(), [this] {
    while (signals_.next()) process_->signal(plan_.signal);
  });
  loop_.watch(alarm_.fd(), [this] { alarm_.set(never); });
}

void PidKeeper::keep(const lock::Granted& grant) {
  Renewer renewer{loop_, log_, lock_, plan_.claim, grant, plan_.lease};
  renewer.attempt(renewer.lease().term_at());  // connects, so that we hear at once when somebody evicts us
  hold(renewer);
  if (renewer.state() == Renewer::State::released)
    return;
  if (!process_has_ended_)
    stop(renewer);
  if (process_has_ended_ && renewer.state() != Renewer::State::lost)
    release();
}

/// Returns when the process has ended, the lock is no longer held, or so little of the lease is left that the process
/// must stop.
void PidKeeper::hold(Renewer& renewer) {
  while (!process_has_ended_ && renewer.state() == Renewer::State::held) {
    const Deadline limit = renewer.lease().term_at();
    if (BootClock::now() >= limit)
      return;
    if (BootClock::now() >= renewer.next()) {
      alarm_.set(limit);
      renewer.attempt(limit);
    } else {
      alarm_.set(std::min(renewer.next(), limit));
      renewer.sleep(std::min(renewer.next(), limit));
    }
  }
}

/// Tells the process that nobody renews the lock any more. It has the rest of the lease in which to end.
void PidKeeper::stop(const Renewer& renewer) {
  process_->tell(
      fmt::format("{}: {}; the process gets {}", plan_.name.text(), describe_loss(renewer), signal_name(plan_.signal)));
  process_->signal(plan_.signal);
  const Deadline end = renewer.state() == Renewer::State::lost ? BootClock::now() : renewer.lease().end();
  while (!process_has_ended_ && BootClock::now() < end) wait_until(end);
}

void PidKeeper::wait_until(Deadline deadline) {
  alarm_.set(deadline);
  loop_.wait(deadline);
}

void PidKeeper::release() {
  try {
    (void)lock::persist(loop_, lock_, plan_.timeout, [this](Deadline deadline) {
      return lock_.release(loop_, plan_.claim, {}, deadline);
    });
  } catch (const Error&) {
    // The lease runs out by itself.
  }
}

}  // namespace rlock::run
