#pragma once

#include <optional>

#include "base/log.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "lock/retry.h"

namespace rlock::run {

/// Keeps a lease alive: knows when to renew and until when the lock is certainly held, and listens, so that it hears at
/// once when somebody evicts us. What happens to the command is up to the caller.
class Renewer {
 public:
  enum class State {
    held,
    released,  // the command itself released the lock, so there is nothing left to renew
    evicted,   // renewals are refused: the lock stays ours until the lease ends or we release it
    lost,      // somebody else may hold the lock already
  };

  /// Everything referred to must outlive the renewer.
  Renewer(const Log& log,
          lock::Lock& lock,
          const lock::Claim& claim,
          const lock::Granted& grant,
          const lock::LeaseTerms& terms);

  const lock::Lease& lease() const { return lease_; }
  State state() const { return state_; }
  bool is_held() const { return state_ == State::held; }
  int renewals() const { return renewals_; }
  /// When to call attempt(). There is no next attempt once the lock is not held.
  Deadline next() const { return is_held() ? next_ : never; }

  /// Who evicted us; set in State::evicted.
  const lock::Eviction& eviction() const { return eviction_; }

  /// Sleeps until `until`, or until a handler of the loop has run or a message has arrived. A message brings next()
  /// forward, and so does a connection that breaks, since no message can arrive until the next renewal makes a new one.
  void sleep(Deadline until);

  /// Tries once to renew, no longer than until `give_up`, and returns whether the lease was extended. Never throws: the
  /// first failure of a series is logged, and next() allows another attempt after a pause.
  bool attempt(Deadline give_up);

 private:
  bool has_lost_a_connection();
  void ask(Deadline give_up, BootClock::time_point sent);
  void note_fate(const lock::Fate& fate);
  void credit(BootClock::time_point sent);
  void note_failure(const Error& why);

  const Log* log_;
  lock::Lock* lock_;
  const lock::Claim* claim_;
  lock::Granted grant_;
  lock::Lease lease_;
  lock::Backoff backoff_;
  lock::Backoff reconnect_backoff_;  // between connections that break again and again
  std::size_t listening_ = 0;        // how many servers we listened to when last counted
  lock::Throttle throttle_;
  State state_ = State::held;
  lock::Eviction eviction_;
  Deadline next_;
  int renewals_ = 0;
  std::optional<BootClock::time_point> failing_since_;  // when the renewal was due that has not succeeded yet
};

}  // namespace rlock::run
