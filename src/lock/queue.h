#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/log.h"
#include "base/loop.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "redis/connection.h"

namespace rlock::lock {

/// The lock was not to be had: who held it when we gave up.
struct Conflict {
  std::string message;
};

struct Patience {
  Milliseconds timeout{2000};        // for one answer
  std::optional<Milliseconds> wait;  // nothing: for ever; zero: not at all
  bool renews = false;  // the taker does, so that a lock will do that is handed over for a moment
};

/// Takes a lock, first come, first served. Asks once; if the lock is held, subscribes to a channel of its own on a
/// second connection, joins the queue, and sleeps until it is woken or until the server said to look again. Where
/// subscribing is forbidden it polls. The message that wakes it may hand it the lock, which saves asking.
///
/// However it ends, also by an exception of a handler of `loop`, nothing of it stays behind on the server but the lock
/// that it returned.
///
/// A withdrawal may reach the server late, even after the next question. So nothing is asked for again with the token
/// or level that was withdrawn: claim() tells those of the grant.
class Queue {
 public:
  /// All references stay the caller's and outlive this.
  Queue(Loop& loop, const Log& log, Lock& lock, Claim claim, Patience patience);

  const Claim& claim() const { return claim_; }

  /// `usable_until` tells until when, after its request was sent, a grant may still be used: one that comes later is
  /// given back and asked for again. Throws Error{unavailable} when the server cannot be reached (also when the wait
  /// ran out because of that), Error{usage} for a refusal that no waiting mends.
  std::variant<Granted, Conflict> take(Milliseconds usable_until);

  /// Takes one more level of a lock that the claim's token holds already; nothing if it does not hold it any more.
  std::optional<Granted> reenter(Milliseconds usable_until);

 private:
  std::variant<Granted, Conflict> compete();
  std::variant<Granted, Conflict> wait_for_turn();
  std::variant<Granted, Conflict> replicate(const Granted& granted);
  std::optional<Granted> examine(const Answer& answer);
  bool is_usable(const Granted& granted) const;
  std::optional<Granted> accept_hand_over();
  Milliseconds waited() const { return std::chrono::duration_cast<Milliseconds>(BootClock::now() - start_); }
  void give_back_late_grant();
  void claim_anew();
  Answer ask(Place::How how);
  void note_failure(const Error& error);
  void subscribe(Deadline deadline);
  bool listens() const;
  void sleep(Deadline until);
  bool read_messages(Deadline& until);
  void withdraw() noexcept;

  Loop* loop_;
  const Log* log_;
  Lock* lock_;
  Claim claim_;
  bool is_nested_ = false;  // the token is an enclosing run's
  Patience patience_;
  BootClock::time_point start_ = BootClock::now();
  Deadline give_up_;
  Milliseconds usable_until_{0};
  std::optional<redis::Connection> subscriber_;
  bool may_subscribe_;
  bool takes_hand_overs_;
  bool complained_ = false;
  std::string ticket_;
  Asked asked_;  // last, and told to wait
  std::optional<Granted> handed_over_;
  Milliseconds told_sleep_{0};  // by the last answer
  std::string obstacle_;        // who stood in the way then
};

}  // namespace rlock::lock
