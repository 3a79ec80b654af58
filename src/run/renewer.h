#pragma once

#include <optional>

#include "base/log.h"
#include "base/loop.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "lock/retry.h"

namespace rlock::run {

/// Keeps a lease alive: knows when to try and how long we may believe that we hold, and listens, so that it hears at
/// once when somebody wants the lock. What is to happen to the command is its caller's business.
class Renewer {
 public:
  enum class State {
    held,
    released,  // by a script inside the command: nothing to renew, and no harm done
    evicted,   // somebody wants it: it is ours until the lease ends, or we release it, and no longer
    lost,      // another may hold it this very moment
  };

  /// All references stay the caller's.
  Renewer(Loop& loop,
          const Log& log,
          lock::Lock& lock,
          const lock::Claim& claim,
          const lock::Granted& grant,
          const lock::LeaseTerms& terms);

  const lock::Lease& lease() const { return lease_; }
  State state() const { return state_; }
  int renewals() const { return renewals_; }
  /// When to call attempt(); never, once the lock is not held.
  Deadline next() const { return state_ == State::held ? next_ : never; }

  /// Who evicted us, in the state of that name.
  const lock::Eviction& eviction() const { return eviction_; }

  /// Sleeps until `until` or a handler of the loop has run. What is told meanwhile ends it, and brings next() forward;
  /// so does a connection that breaks, since nothing can be told us before the next renewal makes a new one.
  void sleep(Deadline until);

  /// Asks once, and not beyond `give_up`. True when the lease has been extended. Never throws: a failure is logged when
  /// it is the first of a row, and tried again after a pause.
  bool attempt(Deadline give_up);

 private:
  bool has_gone_deaf();
  void ask(Deadline deadline, BootClock::time_point sent);
  void credit(BootClock::time_point sent);
  void note_failure(const Error& why);

  Loop* loop_;
  const Log* log_;
  lock::Lock* lock_;
  const lock::Claim* claim_;
  lock::Fence fence_;
  lock::Lease lease_;
  lock::Backoff backoff_;
  lock::Backoff deafness_;     // between connections that break again and again
  std::size_t listening_ = 0;  // servers, when the lease was last extended
  lock::Throttle throttle_;
  State state_ = State::held;
  lock::Eviction eviction_;
  Deadline next_;
  int renewals_ = 0;
  std::optional<BootClock::time_point> failing_since_;
};

}  // namespace rlock::run
