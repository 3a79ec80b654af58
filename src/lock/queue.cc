#include "lock/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "lock/conflict.h"
#include "lock/retry.h"
#include "lock/script_call.h"
#include "redis/exchange.h"

namespace rlock::lock {
namespace {

constexpr Milliseconds shortest_poll{50};
constexpr Milliseconds longest_poll{250};
constexpr Milliseconds longest_withdrawal{500};
constexpr long long longest_sleep{60'000};

/// How long a message says to sleep; zero, ask at once, for one that is not understood.
Milliseconds read_sleep(std::string_view text) {
  long long ms = 0;
  std::from_chars(text.data(), text.data() + text.size(), ms);
  return Milliseconds{std::min(ms, longest_sleep)};
}

}  // namespace

Queue::Queue(Loop& loop, const Log& log, Lock& lock, Claim claim, Patience patience)
    : loop_(&loop),
      log_(&log),
      lock_(&lock),
      claim_(std::move(claim)),
      patience_(patience),
      give_up_(patience.wait ? BootClock::now() + *patience.wait : never),
      may_subscribe_(lock.can_queue()),
      takes_hand_overs_(patience.renews && claim_.min_hold == Milliseconds{0} && !claim_.replicas) {}

std::variant<Granted, Conflict> Queue::take(Milliseconds usable_until) {
  usable_until_ = usable_until;
  try {
    const auto taken = compete();
    const auto* granted = std::get_if<Granted>(&taken);
    return granted != nullptr && claim_.replicas ? replicate(*granted) : taken;
  } catch (...) {
    withdraw();
    throw;
  }
}

std::variant<Granted, Conflict> Queue::compete() {
  if (auto granted = examine(ask(Place::How::once)))
    return *granted;
  if (BootClock::now() >= give_up_)
    return Conflict{obstacle_};
  log_->notice(fmt::format("waiting for {}, {}", lock_->name().text(), obstacle_));
  return wait_for_turn();
}

/// A grant that too few replicas know of would not outlive the master: it is given back.
std::variant<Granted, Conflict> Queue::replicate(const Granted& granted) {
  const auto [wanted, limit] = *claim_.replicas;
  const auto have = lock_->count_replicas(*loop_, wanted, limit, BootClock::now() + limit + patience_.timeout);
  if (have >= wanted && is_usable(granted))
    return granted;
  withdraw();
  return Conflict{fmt::format("{} of {} replicas had it within {}", have, wanted, format_duration(limit))};
}

std::optional<Granted> Queue::reenter(Milliseconds usable_until) {
  usable_until_ = usable_until;
  is_nested_ = true;
  try {
    for (;;) {
      const Answer answer = ask(Place::How::reenter);
      if (std::holds_alternative<Lost>(answer) || std::holds_alternative<Evicted>(answer))
        return std::nullopt;
      if (auto granted = examine(answer))
        return granted;
    }
  } catch (...) {
    withdraw();
    throw;
  }
}

std::variant<Granted, Conflict> Queue::wait_for_turn() {
  for (;;) {
    if (auto granted = accept_hand_over())
      return *granted;
    if (auto granted = examine(ask(Place::How::queue)))
      return *granted;
    if (BootClock::now() >= give_up_) {
      withdraw();
      return Conflict{obstacle_};
    }
    if (!may_subscribe_ || !listens())  // or asked a new node, which cannot wake us yet
      told_sleep_ = jitter(shortest_poll, longest_poll);
    sleep(std::min(give_up_, BootClock::now() + told_sleep_));
  }
}

/// One question, repeated through failures while there is time; a waiter listens before it queues.
Answer Queue::ask(Place::How how) {
  const Deadline until = std::max(give_up_, BootClock::now() + patience_.timeout);
  return persist(*loop_, *lock_, patience_.timeout, until, [&](Deadline deadline) {
    try {
      if (!lock_->can_queue())
        claim_anew();  // a round of a quorum that fails ends with a withdrawal
      if (how == Place::How::queue)
        subscribe(deadline);
      const bool once = how == Place::How::queue && !listens();
      const Place place{.how = once ? Place::How::once : how, .ticket = ticket_, .waited = waited()};
      return lock_->acquire(*loop_, claim_, place, deadline);
    } catch (const Error& error) {
      note_failure(error);
      subscriber_.reset();  // what silenced one connection may have silenced the other
      throw;
    }
  });
}

/// A wait that goes on through an outage says so, once.
void Queue::note_failure(const Error& error) {
  const bool goes_on = error.may_pass() && lock_->was_reached() && BootClock::now() < give_up_;
  if (goes_on && !std::exchange(complained_, true))
    log_->notice(fmt::format("{}: {}; trying again", lock_->name().text(), error.what()));
}

/// The grant, if it is one that can be used.
std::optional<Granted> Queue::examine(const Answer& answer) {
  if (const auto* granted = std::get_if<Granted>(&answer)) {
    if (is_usable(*granted))
      return *granted;
    if (BootClock::now() >= give_up_) {
      throw Error{ExitCode::unavailable,
                  fmt::format("{}: was granted, but too late to be used: the lease is too short "
                              "for this server",
                              lock_->name().text())};
    }
    give_back_late_grant();
  } else if (const auto* busy = std::get_if<Busy>(&answer)) {
    ticket_ = busy->ticket;
    asked_ = busy->asked;
    told_sleep_ = busy->sleep;
    obstacle_ = describe(*busy, claim_.capacity);
  } else if (const auto* foreign = std::get_if<Foreign>(&answer)) {
    ticket_ = foreign->ticket;
    asked_ = foreign->asked;
    told_sleep_ = std::max(foreign->sleep, jitter(shortest_poll, longest_poll));
    obstacle_ = describe(*foreign);
  } else if (const auto* upgrade = std::get_if<Upgrade>(&answer)) {
    refuse(lock_->name(), claim_.capacity, *upgrade);
  } else if (const auto* other = std::get_if<OtherOnce>(&answer)) {
    refuse(lock_->name(), *other);
  } else {
    claim_anew();
    ticket_.clear();
  }
  return std::nullopt;
}

/// Half of a lease that is to be confirmed must be left for that.
bool Queue::is_usable(const Granted& granted) const {
  const Milliseconds limit = granted.unconfirmed ? std::min(usable_until_, *granted.unconfirmed / 2) : usable_until_;
  return BootClock::now() < granted.sent + limit;
}

/// One that cannot be used is asked for, as after any message.
std::optional<Granted> Queue::accept_hand_over() {
  const auto granted = std::exchange(handed_over_, std::nullopt);
  if (!granted || !takes_hand_overs_ || !is_usable(*granted))
    return std::nullopt;
  return granted;
}

void Queue::give_back_late_grant() {
  log_->step(fmt::format("{} was granted too late to be used; giving it back", lock_->name().text()));
  withdraw();
  claim_anew();
  ticket_.clear();
  told_sleep_ = Milliseconds{0};
  obstacle_ = "which answers too late for so short a lease";
}

/// As somebody whom no withdrawal is on its way to.
void Queue::claim_anew() {
  claim_.level = Level::random();
  if (!is_nested_)
    claim_.token = Token::random();
  subscriber_.reset();  // it listens on the old level's channel
}

/// Listens on our own channel, on a connection of its own, before the queue learns of it: otherwise we would look dead.
void Queue::subscribe(Deadline deadline) {
  if (!may_subscribe_ || listens() || lock_->node() == nullptr)
    return;
  subscriber_.emplace(*lock_->node());
  try {
    const auto replies =
        redis::call(*loop_, *subscriber_, {{"SUBSCRIBE", lock_->name().channel(claim_.level)}}, deadline);
    check_reply(subscriber_->address(), replies[0]);
    subscriber_->listen();
  } catch (const Error& error) {
    subscriber_.reset();
    if (error.code() != ExitCode::no_permission) {
      lock_->forget_node();  // which may be the master no longer
      throw;
    }
    may_subscribe_ = false;
    log_->step(fmt::format("may not subscribe, so it polls instead of queueing: {}", error.what()));
  }
}

/// The master may have moved since we subscribed.
bool Queue::listens() const {
  const redis::Address* node = lock_->node();
  return subscriber_ && subscriber_->is_open() && node != nullptr &&
         subscriber_->address().endpoints == node->endpoints;
}

/// Until a message says otherwise. A connection that breaks ends the sleep: ask() makes a new one.
void Queue::sleep(Deadline until) {
  while (BootClock::now() < until) {
    if (!subscriber_) {
      loop_->wait(until);
      continue;
    }
    pollfd interest = subscriber_->interest();
    if (loop_->wait({&interest, 1}, until) == Loop::Wake::ready && !read_messages(until))
      return;
  }
}

/// All that have arrived: the descriptor would not tell of a second one that was read with the first. False when it is
/// time to ask. A message never lengthens a sleep: who sleeps longer than the script was told is taken for dead.
bool Queue::read_messages(Deadline& until) {
  try {
    while (subscriber_->advance()) {
      const redis::Reply message = std::move(subscriber_->take_replies()[0]);
      subscriber_->listen();
      const std::string_view text = message.elements.size() == 3 ? message.elements[2].text : std::string_view{};
      handed_over_ = read_hand_over(text, asked_, claim_.token);
      const Milliseconds told = read_sleep(text);
      if (told <= Milliseconds{0})
        return false;
      until = std::min(until, BootClock::now() + told);
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// Takes back whatever we asked for: the place in the queue, and a lock granted by an answer that we did not see.
/// A server that has never answered is told too: it may yet read what we sent it. Quietly: one that does not answer
/// forgets us when the lease and the sleep that it told us have run out.
void Queue::withdraw() noexcept {
  try {
    Loop quiet;  // without the handlers: we may be here because one of them has thrown
    const Milliseconds limit = std::min(patience_.timeout, longest_withdrawal);
    persist(quiet, *lock_, limit, BootClock::now() + limit, [&](Deadline deadline) {
      lock_->cancel(quiet, claim_, deadline);
    });
  } catch (const std::exception& error) {
    log_->step(fmt::format("could not leave the queue of {}: {}", lock_->name().text(), error.what()));
  }
}

}  // namespace rlock::lock
