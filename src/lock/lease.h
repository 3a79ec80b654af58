#pragma once

#include <algorithm>
#include <optional>

#include "base/assert.h"
#include "base/clock.h"
#include "base/duration.h"

namespace rlock::lock {

/// How much of a time that another clock measures we may rely on: all but 1 % and 2 ms.
constexpr Milliseconds trusted(Milliseconds theirs) { return theirs - theirs / 100 - Milliseconds{2}; }

/// The times of a lease, all derived from its length T. The lease must end for the holder before it ends on the server,
/// although their clocks run at different rates, which may differ by 1 % here (Gray and Cheriton, "Leases", 1989).
///
///     |s --- renew_every --- attempt --- attempt ---|TERM --- kill_after ---|KILL --- margin ---|E    T|
struct LeaseTerms {
  Milliseconds ttl{};  // T
  Milliseconds renew_every{};
  Milliseconds attempt{};     // the longest wait for the answer to one renewal
  Milliseconds kill_after{};  // from TERM to KILL
  Milliseconds margin{};      // from KILL to the end: the time in which the processes die

  Milliseconds usable() const { return trusted(ttl); }
};

struct LeaseOptions {
  Milliseconds ttl{30'000};
  std::optional<Milliseconds> renew_every{};  // by default ttl / 3
  std::optional<Milliseconds> kill_after{};   // by default the smaller of 5 s and ttl / 4
  Milliseconds timeout{2'000};                // for one answer of the server
};

/// The terms of a grant that is short until its first renewal. That renewal is due early, but not at once, so that a
/// short command has ended before it.
LeaseTerms unconfirmed_terms(const LeaseTerms& terms, Milliseconds ttl);

/// Throws Error{usage}, with the sum, if a renewal interval, two attempts, kill_after and margin do not fit into `ttl`.
LeaseTerms plan_lease(const LeaseOptions& options);

/// How long we may believe that we hold the lock. It counts from just before the request that was granted was sent.
class Lease {
 public:
  /// `unconfirmed`: the length of the lease until it is first extended, if that is shorter.
  Lease(const LeaseTerms& terms, BootClock::time_point sent, std::optional<Milliseconds> unconfirmed = {})
      : full_terms_(terms),
        terms_(unconfirmed ? unconfirmed_terms(terms, std::min(*unconfirmed, terms.ttl)) : terms),
        sent_(sent),
        confirmed_(!unconfirmed) {}

  const LeaseTerms& terms() const { return terms_; }
  /// To be called only for the answer "extended", with the time at which its own request was sent.
  void extended(BootClock::time_point sent) {
    always(sent >= sent_ && full_terms_.ttl >= terms_.ttl, "a lease never becomes shorter");
    terms_ = full_terms_;
    sent_ = sent;
    confirmed_ = true;
  }

  /// Until when a grant that has just come may be used. Half of an unconfirmed lease is kept for confirming it.
  Deadline usable_until() const { return confirmed_ ? term_at() : sent_ + terms_.ttl / 2; }
  Deadline renew_at() const { return sent_ + terms_.renew_every; }
  Deadline term_at() const { return kill_at() - terms_.kill_after; }
  Deadline kill_at() const { return end() - terms_.margin; }
  Deadline end() const { return sent_ + terms_.usable(); }
  /// When the server frees the lock if it hears nothing more, for messages.
  Deadline free_at() const { return sent_ + terms_.ttl; }
  /// How late a KILL may be before somebody else must do it. The rest of the margin is theirs.
  Milliseconds tolerance() const { return terms_.margin / 4; }

 private:
  LeaseTerms full_terms_;
  LeaseTerms terms_;  // in force
  BootClock::time_point sent_;
  bool confirmed_;
};

}  // namespace rlock::lock
