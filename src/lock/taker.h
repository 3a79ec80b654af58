#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/loop.h"
#include "lock/conflict.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "lock/retry.h"
#include "lock/wait_notice.h"

namespace rlock::lock {

struct Patience {
  Milliseconds timeout{2000};        // for one answer
  std::optional<Milliseconds> wait;  // nothing: for ever; zero: not at all
  bool renews = false;               // the caller does, so the taker need not confirm a short grant
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
  Taker(Loop& loop, const Log& log, Lock& lock, Claim claim, const LeaseTerms& terms, Patience patience);

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
  Taken secure(const Granted& granted);
  std::optional<Taken> examine(const Answer& answer);
  std::optional<Granted> examine_grant(const Granted& granted);
  void note_obstacle(const Busy& busy);
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
  void withdraw() noexcept;
  void tell(const Granted& grant) const;

  Loop* loop_;
  const Log* log_;
  Lock* lock_;
  Claim claim_;
  LeaseTerms terms_;
  Patience patience_;
  BootClock::time_point start_ = BootClock::now();
  Deadline give_up_;
  bool complained_ = false;
  WaitNotice notice_;
  long long place_ = 0;           // in the queue, by the last answer
  bool asked_as_poller_ = false;  // by the last question
  std::string ticket_;
  Asked asked_;  // the last question that was answered with Busy or Foreign
  std::optional<Granted> handed_over_;
  Milliseconds told_sleep_{0};  // by the last answer
  bool tied_ = false;           // by the last answer
  int ties_ = 0;                // so far
  Throttle throttle_;
  std::string obstacle_;  // who held the lock at the last answer
};

}  // namespace rlock::lock
