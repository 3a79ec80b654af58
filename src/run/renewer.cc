#include "run/renewer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace rlock::run {
namespace {

/// How long a run may hold the lock before anybody can tell it to give that up.
constexpr Milliseconds longest_deafness{500};

}  // namespace

Renewer::Renewer(const Log& log,
                 lock::Lock& lock,
                 const lock::Claim& claim,
                 const lock::Granted& grant,
                 const lock::LeaseTerms& terms)
    : log_(&log),
      lock_(&lock),
      claim_(&claim),
      grant_(grant),
      lease_(terms, grant.sent, grant.unconfirmed),
      next_(lease_.renew_at()) {
  lock_->listen(claim_->level);  // with the first renewal, unless we have waited
  listening_ = lock_->count_listening();
  if (listening_ == 0)
    next_ = std::min(next_, Deadline{grant.sent} + longest_deafness);
}

/// Anybody may publish on our channel, so a message only prompts a renewal: the server's answer to that is what counts.
void Renewer::sleep(Deadline until) {
  if (!lock_->take_messages().empty())
    next_ = std::min(next_, throttle_.next());
  else if (has_lost_a_connection())
    next_ = std::min(next_, BootClock::now() + reconnect_backoff_.next());
  else
    lock_->sleep(until);
}

/// True once for each connection that breaks.
bool Renewer::has_lost_a_connection() {
  const std::size_t before = std::exchange(listening_, std::min(listening_, lock_->count_listening()));
  return listening_ < before;
}

bool Renewer::attempt(Deadline give_up) {
  const auto sent = BootClock::now();
  throttle_.note_question();
  try {
    ask(give_up, sent);
  } catch (const Error& error) {
    note_failure(error);
    next_ = BootClock::now() + backoff_.next();
    return false;
  }
  return is_held();
}

void Renewer::ask(Deadline give_up, BootClock::time_point sent) {
  // In a quorum a server that fails does not answer for the others, so one that is slow is waited for.
  const auto patience = lock_->can_queue() ? BootClock::duration{} : (lease_.term_at() - sent) / 2;
  const Deadline deadline = std::min(give_up, sent + std::max<BootClock::duration>(lease_.terms().attempt, patience));
  const lock::Renewal renewal = lock_->renew(*claim_, grant_, deadline);
  if (std::holds_alternative<lock::Extended>(renewal)) {
    credit(sent);
  } else if (const auto* evicted = std::get_if<lock::Evicted>(&renewal)) {
    note_fate(*evicted);
  } else {
    note_fate(lock_->fate_of(
        claim_->token, claim_->level, grant_.fence, std::min(give_up, BootClock::now() + lease_.terms().attempt)));
  }
}

/// The lock is not ours any more.
void Renewer::note_fate(const lock::Fate& fate) {
  if (std::holds_alternative<lock::GivenBack>(fate)) {
    state_ = State::released;
    log_->notice(fmt::format("{} was released; the command goes on without it", lock_->name().text()));
  } else if (const auto* evicted = std::get_if<lock::Evicted>(&fate)) {
    state_ = State::evicted;
    eviction_ = evicted->eviction;
  } else {
    state_ = State::lost;
  }
}

void Renewer::credit(BootClock::time_point sent) {
  if (sent >= lease_.renew_at())
    reconnect_backoff_.reset();
  lease_.extended(sent);
  next_ = lease_.renew_at();
  listening_ = lock_->count_listening();
  ++renewals_;
  log_->step(fmt::format("renewed {}, lease {} left", lock_->name().text(), format_duration(time_until(lease_.end()))));
  if (failing_since_) {
    const auto outage = time_since(*failing_since_);
    log_->error(fmt::format("{} is renewed again after {}", lock_->name().text(), format_duration(outage)));
  }
  failing_since_.reset();
  backoff_.reset();
}

/// A failure before a renewal is due does not concern the user.
void Renewer::note_failure(const Error& why) {
  if (failing_since_ || BootClock::now() < lease_.renew_at()) {
    log_->step(fmt::format("cannot renew {}: {}", lock_->name().text(), why.what()));
    return;
  }
  failing_since_ = lease_.renew_at();
  log_->error(fmt::format("cannot renew {}: {}; lease {} left",
                          lock_->name().text(),
                          why.what(),
                          format_duration(time_until(lease_.end()))));
}

}  // namespace rlock::run
