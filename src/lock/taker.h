#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/loop.h"
#include "lock/answer.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "lock/retry.h"

namespace rlock::lock {

/// Why the lock could not be had, or is not needed, as the part of a message after the lock's name.
struct Conflict {
  enum class Kind {
    held,        // or the wait ran out, too few replicas have the lock, or it was lost before its first renewal
    full,        // the queue has as many waiters as --max-waiting allows
    superseded,  // by a newer waiter (--latest, --replace)
    failed,      // so often that no other attempt is to be made (--attempts)
    done,        // the work has been done already (--once, --once-per)
  };
  Kind kind = Kind::held;
  std::string message;
};
using Taken = std::variant<Granted, Conflict>;

struct Patience {
  Milliseconds timeout{2000};                       // for one answer
  std::optional<Milliseconds> wait;                 // nothing: for ever; zero: not at all
  bool caller_renews = false;                       // the caller does, so the taker need not confirm a short grant
  std::function<std::string(const Owner&)> hint{};  // what else to say of a holder when a wait for it begins, if not ""
};

/// What a user is told of a wait: when it begins, who is in the way and how long it may take; on a terminal, how the
/// queue moves on; and how long it took. The log stays the caller's.
class WaitNotice {
 public:
  WaitNotice(const Log& log, Deadline give_up) : log_(&log), give_up_(give_up) {}

  /// `place`: 1 is the first in the queue, 0 is not in it. `hold`: tells it from others, or "". That a hold has
  /// begun, was replaced or has ended is told too. Returns whether this was the first time.
  bool waiting(const std::string& lock, const std::string& obstacle, long long place, const std::string& hold);
  void acquired(const std::string& lock, Milliseconds waited) const;

 private:
  const Log* log_;
  Deadline give_up_;
  std::optional<BootClock::time_point> told_at_;
  long long told_place_ = 0;
  std::string told_hold_;
};

/// Takes a lock, first come, first served. It asks; if the lock is held, it joins the queue, listens, and sleeps until
/// a message tells it to ask or it has slept for as long as the server said. If it may not listen it polls. The message
/// that wakes it may also hand it the lock, which saves a question.
///
/// However it ends, even by an exception from a handler of the loop, nothing of it stays behind on the server but the
/// lock that it returned.
///
/// A cancel may reach the server late, even after the next question. So nothing is asked for again with a token or
/// level that was cancelled, and claim() tells which ones the grant has.
class Taker {
 public:
  /// A grant that comes too late for the `terms` of its lease is given back and asked for again. Everything referred to
  /// must outlive the taker.
  Taker(const Log& log, Lock& lock, Claim claim, const LeaseTerms& terms, Patience patience);

  const Claim& claim() const { return claim_; }

  /// `inherited` is the token of an enclosing run: while that holds the lock, this takes one more level of it. Throws
  /// Error{unavailable} if the server cannot be reached (also if the wait ran out because of that), Error{usage} for a
  /// refusal that waiting cannot mend.
  Taken take(const std::optional<Token>& inherited = {});

 private:
  std::optional<Taken> reenter(const Token& token);
  Taken compete();
  bool break_tie();
  bool note_tie(bool tied);
  std::optional<Taken> secure(std::optional<Taken> taken);
  std::optional<Taken> examine(const Answer& answer);
  std::optional<Granted> examine_grant(const Granted& granted);
  template <typename Refusal>
  void note_place(const Refusal& refusal);
  Milliseconds sleep_of_poller(Milliseconds told) const;
  void tell_obstacle();
  void note_obstacle(const Busy& busy);
  void note_obstacle(const OnHold& held_back);
  void note_obstacle(const Foreign& foreign);
  bool is_in_time(const Granted& granted) const;
  std::optional<Granted> accept_hand_over();
  Milliseconds waited() const { return time_since(start_); }
  void give_back_late_grant();
  void start_over();
  void claim_anew();
  Answer ask(Question::How how);
  void listen(Question::How how);
  void note_refusal_to_listen();
  void note_failure(const Error& error);
  void sleep(Deadline until);
  void heed(std::string_view message, Deadline& until);
  void withdraw(bool timed_out = false) noexcept;
  void tell(const Granted& grant) const;

  const Log* log_;
  Lock* lock_;
  Claim claim_;
  LeaseTerms terms_;
  Patience patience_;
  BootClock::time_point start_ = BootClock::now();
  Deadline give_up_;
  std::optional<BootClock::time_point> failing_since_;
  bool complained_ = false, warned_ = false;
  WaitNotice notice_;
  long long place_ = 0;           // in the queue, by the last answer
  bool asked_as_poller_ = false;  // by the last question
  std::string ticket_;
  Asked asked_;  // the last question that was answered with Busy, OnHold or Foreign
  std::optional<Granted> handed_over_;
  Fence largest_heard_{};       // the largest that a message has handed over
  Milliseconds told_sleep_{0};  // by the last answer
  bool tied_ = false;           // by the last answer
  int ties_ = 0;                // so far
  Throttle throttle_;
  std::string hold_;      // at the last answer, if the lock was on hold
  std::string obstacle_;  // who held the lock at the last answer
  Owner holder_;          // of the last answer that named one
};

}  // namespace rlock::lock
