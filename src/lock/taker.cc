#include "lock/taker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <ratio>
#include <utility>

#include "base/error.h"
#include "lock/wording.h"

namespace rlock::lock {
namespace {

/// One function for each alternative of a variant, for std::visit: a missing one does not compile.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

constexpr Milliseconds shortest_poll{50};
constexpr Milliseconds longest_poll{250};
constexpr int long_outage = 10;  // so many times as long as one answer may take

// Takers that ask the servers of a quorum at the same moment may split them, so that none gets a majority. Each asks
// again after a random pause, but only so often, since a server may have forgotten a holder that others name.
constexpr int most_ties = 6;
constexpr Milliseconds shortest_tie_break{5};
constexpr Milliseconds longest_tie_break{30};

constexpr std::chrono::seconds between_lines{10};
constexpr Milliseconds worth_telling{1000};

Taken extend(Lock& lock, const Claim& claim, Milliseconds timeout, Deadline until, const Granted& granted) {
  return persist(lock, timeout, until, [&](Deadline deadline) -> Taken {
    const auto sent = BootClock::now();
    const Renewal renewal = lock.renew(claim, granted, deadline);
    if (std::holds_alternative<Extended>(renewal))
      return Granted{.fence = granted.fence, .slot = granted.slot, .sent = sent};
    const auto* evicted = std::get_if<Evicted>(&renewal);
    const std::string how = evicted != nullptr ? describe(evicted->eviction) : "lost";
    return Conflict{.message = how + " right after it was granted"};
  });
}

/// A grant that too few replicas have would be lost with the master.
std::optional<Conflict> check_replicas(Lock& lock,
                                       const Replicas& replicas,
                                       Milliseconds timeout,
                                       Deadline usable_until) {
  const auto [wanted, limit] = replicas;
  const auto have = lock.await_replicas(wanted, limit, BootClock::now() + limit + timeout);
  if (have < wanted)
    return Conflict{.message = fmt::format("{} of {} replicas had it within {}", have, wanted, format_duration(limit))};
  if (BootClock::now() >= usable_until)
    return Conflict{.message = "the replicas had it too late to be used: the lease is too short for them"};
  return std::nullopt;
}

/// Makes sure of a grant to `claim`: extends its short lease to the full length, and then waits until as many replicas
/// have it as the claim wants. Each question may take `timeout`. Returns the grant as it stands then, or why it is not
/// to be used, in which case the caller gives it back. Throws Error{unavailable} while the server does not answer.
Taken confirm(Lock& lock, const Claim& claim, const LeaseTerms& terms, Milliseconds timeout, const Granted& granted) {
  Taken taken = granted;
  if (granted.unconfirmed) {
    Claim alone = claim;
    alone.replicas.reset();  // they are asked below, and have their full time then
    taken = extend(lock, alone, timeout, Lease{terms, granted.sent, granted.unconfirmed}.end(), granted);
  }
  const auto* held = std::get_if<Granted>(&taken);
  if (held == nullptr || !claim.replicas)
    return taken;
  const Lease lease{terms, held->sent, held->unconfirmed};
  if (auto conflict = check_replicas(lock, *claim.replicas, timeout, lease.usable_until()))
    return *std::move(conflict);
  return taken;
}

/// Rounded up, so that it begins with what --wait said.
std::string describe_rest(BootClock::duration rest) {
  using Tenths = std::chrono::duration<long long, std::deci>;
  return format_duration(std::chrono::ceil<Tenths>(rest));
}

}  // namespace

bool WaitNotice::waiting(const std::string& lock,
                         const std::string& obstacle,
                         long long place,
                         const std::string& hold) {
  const auto now = BootClock::now();
  const bool first = !told_at_;
  const bool moved = told_at_ && place != told_place_ && now >= *told_at_ + between_lines;
  if (told_at_ && hold == told_hold_ && !(moved && ::isatty(STDERR_FILENO) == 1))
    return false;
  told_at_ = now;
  told_hold_ = hold;
  told_place_ = place;
  const std::string limit = give_up_ == never ? "" : "; gives up in " + describe_rest(give_up_ - now);
  log_->notice(fmt::format(
      "waiting for {}, {}{}{}", lock, obstacle, place > 1 ? fmt::format("; place {} in the queue", place) : "", limit));
  return first;
}

void WaitNotice::acquired(const std::string& lock, Milliseconds waited) const {
  if (told_at_ && waited >= worth_telling)
    log_->notice(fmt::format("{} acquired after {}", lock, format_duration(waited)));
}

Taker::Taker(const Log& log, Lock& lock, Claim claim, const LeaseTerms& terms, Patience patience)
    : log_(&log),
      lock_(&lock),
      claim_(std::move(claim)),
      terms_(terms),
      patience_(std::move(patience)),
      give_up_(patience_.wait ? BootClock::now() + *patience_.wait : never),
      notice_(log, give_up_) {
  if (!lock.can_queue())
    claim_.waiter = Token::random();
}

Taken Taker::take(const std::optional<Token>& inherited) {
  try {
    const auto entered = inherited ? reenter(*inherited) : std::nullopt;
    auto taken = entered ? *entered : compete();
    if (const auto* granted = std::get_if<Granted>(&taken))
      tell(*granted);
    return taken;
  } catch (const Error& error) {
    withdraw();
    // After a wait of hours, an outage must not read like an attempt that failed at once.
    const bool has_waited = lock_->was_reached() && patience_.wait > Milliseconds{0} && BootClock::now() >= give_up_;
    if (error.code() != ExitCode::unavailable || !has_waited)
      throw;
    throw Error{error.code(),
                fmt::format("the wait of {} is over: {}", format_duration(*patience_.wait), error.what())};
  } catch (...) {
    withdraw();
    throw;
  }
}

/// The inherited token is used only while it holds the lock. If we took a lost lock again with it, the enclosing run
/// would go on renewing what it had lost.
std::optional<Taken> Taker::reenter(const Token& token) {
  const Token own = std::exchange(claim_.token, token);
  claim_.nested = true;
  for (;;) {
    const Answer answer = ask(Question::How::reenter);
    if (std::holds_alternative<Lost>(answer) || std::holds_alternative<Evicted>(answer))
      break;
    if (auto taken = secure(examine(answer)))
      return taken;
    lock_->loop().wait_out(throttle_.next());
  }
  claim_.nested = false;
  claim_.token = own;
  log_->notice(
      fmt::format("{}: the lock around this run was released or lost; asking for it anew", lock_->name().text()));
  return std::nullopt;
}

Taken Taker::compete() {
  const bool waits = patience_.wait != Milliseconds{0};
  for (;;) {
    const auto handed_over = accept_hand_over();
    const auto taken = handed_over ? std::optional<Taken>{*handed_over}
                                   : examine(ask(waits ? Question::How::queue : Question::How::once));
    if (auto secured = secure(taken))
      return *std::move(secured);
    if (break_tie())
      continue;
    if (BootClock::now() >= give_up_) {
      if (obstacle_.empty())
        obstacle_ = "the server has taken back every answer";
      if (!waits)
        return Conflict{.message = obstacle_};
      withdraw(true);
      return Conflict{.message = fmt::format("{}; the wait of {} is over",
                                             obstacle_,
                                             format_duration(patience_.wait.value_or(Milliseconds{0})))};
    }
    if (!obstacle_.empty())
      tell_obstacle();
    sleep(std::min(give_up_, std::max(BootClock::now() + told_sleep_, throttle_.next())));
  }
}

/// After a tie: pauses until it is time to ask again.
bool Taker::break_tie() {
  if (!std::exchange(tied_, false))
    return false;
  ++ties_;
  lock_->loop().wait_out(BootClock::now() + jitter(shortest_tie_break, longest_tie_break));
  return true;
}

/// Makes sure of a grant, unless that is the keeper's business. Returns nothing if that took too long.
std::optional<Taken> Taker::secure(std::optional<Taken> taken) {
  const auto* granted = taken ? std::get_if<Granted>(&*taken) : nullptr;
  if (granted == nullptr || (!claim_.replicas && (!granted->unconfirmed || patience_.caller_renews)))
    return taken;
  auto confirmed = confirm(*lock_, claim_, terms_, patience_.timeout, *granted);
  if (const auto* held = std::get_if<Granted>(&confirmed))
    return examine_grant(*held);
  withdraw();
  return confirmed;
}

/// Puts one question, and repeats it through failures while there is time.
Answer Taker::ask(Question::How how) {
  const Deadline until = std::max(give_up_, BootClock::now() + patience_.timeout);
  return persist(*lock_, patience_.timeout, until, [&](Deadline deadline) {
    try {
      if (!lock_->can_queue())
        claim_anew();  // because a quorum's round that fails ends with a cancel
      listen(how);
      asked_as_poller_ = claim_.polls || !lock_->can_queue();
      throttle_.note_question();
      const Milliseconds age = how == Question::How::reenter ? Milliseconds{0} : waited();
      const Question question{.how = how, .ticket = ticket_, .waited = age};
      auto answer = lock_->acquire(claim_, question, deadline);
      failing_since_.reset();
      note_refusal_to_listen();
      return answer;
    } catch (const Error& error) {
      note_failure(error);
      throw;
    }
  });
}

/// Waiters listen. A run that does not wait listens only from its first renewal on, so a short one never does.
void Taker::listen(Question::How how) {
  if (lock_->can_queue() && !claim_.polls && how == Question::How::queue)
    lock_->listen(claim_.level);
}

void Taker::note_refusal_to_listen() {
  const auto& why = lock_->refusal_to_listen();
  if (why && !std::exchange(claim_.polls, true))
    log_->step(fmt::format("may not subscribe, so it polls and keeps its place in the queue: {}", why->what()));
}

/// Tells the user, once, that the wait goes on through an outage, and once more, even with --quiet, if that does not
/// end.
void Taker::note_failure(const Error& error) {
  const auto now = BootClock::now();
  if (!error.may_pass() || !lock_->was_reached() || now >= give_up_)
    return;
  failing_since_ = failing_since_.value_or(now);
  if (!std::exchange(complained_, true))
    log_->notice(fmt::format("{}: {}; trying again", lock_->name().text(), error.what()));
  const auto lasts = std::chrono::floor<Milliseconds>(now - *failing_since_);
  if (lasts >= long_outage * patience_.timeout && !std::exchange(warned_, true))
    log_->error(
        fmt::format("{}: {}, for {} now; trying again", lock_->name().text(), error.what(), format_duration(lasts)));
}

/// The end of the attempt, if this answer ends it.
std::optional<Taken> Taker::examine(const Answer& answer) {
  using Kind = Conflict::Kind;
  std::optional<Taken> end;
  const auto end_by = [&end](Kind kind, std::string message) {
    end = Conflict{.kind = kind, .message = std::move(message)};
  };
  const Overloaded react{
      [&](const Granted& granted) { end = examine_grant(granted); },
      [&](const Full& full) {
        if (!note_tie(full.tied))
          end_by(Kind::full, describe(full));
      },
      [&](const Superseded& newer) {
        if (!note_tie(newer.tied))
          end_by(Kind::superseded, "superseded by " + describe(newer.by));
      },
      [&](const Exhausted& exhausted) { end_by(Kind::failed, describe(exhausted)); },
      [&](const Done& done) { end_by(Kind::done, describe(done, claim_)); },
      [&](const Upgrade& upgrade) { refuse(lock_->name(), claim_.capacity, upgrade); },
      [&](const OtherOnce& other) { refuse(lock_->name(), other); },
      [&](const Busy& busy) { note_obstacle(busy); },
      [&](const OnHold& held_back) { note_obstacle(held_back); },
      [&](const Foreign& foreign) { note_obstacle(foreign); },
      // The level has ended.
      [&](const Cancelled&) { start_over(); },
      [&](const Evicted&) {
        withdraw();  // a lock that was handed to us, and that nobody else would give back
        start_over();
      },
      [&](const Lost&) { start_over(); },
  };
  std::visit(react, answer);
  return end;
}

std::optional<Granted> Taker::examine_grant(const Granted& granted) {
  if (is_in_time(granted))
    return granted;
  if (BootClock::now() >= give_up_) {
    throw Error{ExitCode::unavailable,
                fmt::format("{}: was granted, but too late to be used: the lease is too short for this server",
                            lock_->name().text())};
  }
  give_back_late_grant();
  return std::nullopt;
}

void Taker::tell_obstacle() {
  const std::string& name = lock_->name().text();
  if (!notice_.waiting(name, obstacle_, place_, hold_) || !patience_.hint)
    return;
  if (const std::string hint = patience_.hint(holder_); !hint.empty())
    log_->notice(fmt::format("{}: {}", name, hint));
}

void Taker::note_obstacle(const Busy& busy) {
  note_place(busy);
  hold_.clear();
  holder_ = busy.cooling.count() > 0 ? Owner{} : busy.holder;
  obstacle_ = describe(busy, claim_.capacity);
  if (busy.failures && busy.cooling.count() > 0)
    obstacle_ += fmt::format("; `rlock status {}` on a terminal shows the command that ends that",
                             key_word(lock_->name().text()));
}

void Taker::note_obstacle(const OnHold& held_back) {
  note_place(held_back);
  // Several servers, by clocks of their own, name different ends of the same hold.
  hold_ = lock_->can_queue() ? describe(held_back.hold) : held_back.hold.by.encode();
  obstacle_ = describe(held_back.hold, held_back.now);
}

template <typename Refusal>
void Taker::note_place(const Refusal& refusal) {
  ticket_ = refusal.ticket;
  asked_ = refusal.asked;
  place_ = refusal.place;
  told_sleep_ = lock_->listens() ? refusal.sleep : sleep_of_poller(refusal.sleep);
  (void)note_tie(refusal.tied && BootClock::now() >= give_up_);  // whoever waits asks again anyway
}

/// Without listening we must ask more often, and at once if the server does not know yet that we poll: until then it
/// takes us for dead.
Milliseconds Taker::sleep_of_poller(Milliseconds told) const {
  if (!asked_as_poller_)
    told = claim_.polls ? Milliseconds{0} : std::min(told, longest_poll);
  return jitter(told / 2, told);
}

void Taker::note_obstacle(const Foreign& foreign) {
  ticket_ = foreign.ticket;
  place_ = foreign.place;
  asked_ = foreign.asked;
  told_sleep_ = std::max(foreign.sleep, jitter(shortest_poll, longest_poll));
  hold_.clear();
  obstacle_ = describe(foreign);
}

/// Returns whether the tie is worth another question.
bool Taker::note_tie(bool tied) {
  tied_ = tied && ties_ < most_ties;
  return tied_;
}

bool Taker::is_in_time(const Granted& granted) const {
  return BootClock::now() < Lease{terms_, granted.sent, granted.unconfirmed}.usable_until();
}

/// A hand-over that comes too late counts for nothing: we ask, as after any message.
std::optional<Granted> Taker::accept_hand_over() {
  const auto granted = std::exchange(handed_over_, std::nullopt);
  return granted && !claim_.replicas && is_in_time(*granted) ? granted : std::nullopt;
}

void Taker::give_back_late_grant() {
  log_->step(fmt::format("{} was granted too late to be used; giving it back", lock_->name().text()));
  withdraw();
  start_over();
  obstacle_ = "granted too late for so short a lease";
}

/// Asks again at once, and without a place in the queue.
void Taker::start_over() {
  claim_anew();
  ticket_.clear();
  told_sleep_ = Milliseconds{0};
}

/// Takes a fresh level, and a fresh token unless the run is nested, so that no cancel in flight can hit it.
void Taker::claim_anew() {
  claim_.level = Level::random();
  if (!claim_.nested)
    claim_.token = Token::random();
}

/// Sleeps until `until`, or until a message says otherwise. A broken connection ends the sleep: ask() makes a new one.
void Taker::sleep(Deadline until) {
  const bool listens = lock_->listens();
  while (BootClock::now() < until && lock_->listens() == listens) {
    for (const std::string& message : lock_->take_messages()) heed(message, until);
    if (handed_over_)
      return;
    lock_->sleep(until);
  }
}

/// A message never lengthens a sleep: to the server, a waiter that sleeps longer than it was told is dead. Of each
/// fence the first message counts: who may listen on all channels knows its proof from then on, and can repeat it,
/// changed.
void Taker::heed(std::string_view message, Deadline& until) {
  if (const auto granted = read_hand_over(message, asked_, claim_.token); granted && granted->fence > largest_heard_) {
    largest_heard_ = granted->fence;
    handed_over_ = granted;
  }
  until = std::min(until, std::max(BootClock::now() + read_sleep(message), throttle_.next()));
}

/// Takes back whatever we asked for: the place in the queue, and a lock that was granted by an answer we did not see. A
/// server that has never answered is told too, since it may yet read what we sent. Failures are only logged: a server
/// that does not answer forgets us once the lease and the sleep that it told us have run out.
void Taker::withdraw(bool timed_out) noexcept {
  try {
    const Loop::Mute quiet{lock_->loop()};  // we may be here because a handler has thrown
    const Milliseconds limit = std::min(patience_.timeout, longest_withdrawal);
    persist(*lock_, limit, [&](Deadline deadline) { lock_->cancel(claim_, deadline, timed_out); });
  } catch (const Error& error) {
    log_->step([&] { return fmt::format("could not leave the queue of {}: {}", lock_->name().text(), error.what()); });
  } catch (const std::bad_alloc&) {
    // There is no memory to say so either.
  }
}

void Taker::tell(const Granted& grant) const {
  const std::string& name = lock_->name().text();
  notice_.acquired(name, waited());
  log_->step([&] {
    const std::string slot = claim_.calendar_slot ? " for " + claim_.calendar_slot->name : "";
    return fmt::format("holding {}{}, fence {}", name, slot, grant.fence.value);
  });
  const auto took = time_since(grant.sent);
  if (took <= terms_.ttl / 10 || grant.unconfirmed)
    return;
  log_->notice(fmt::format("{}: the answer took {}; a lease of {} is short for this network",
                           name,
                           format_duration(took),
                           format_duration(terms_.ttl)));
}

}  // namespace rlock::lock
