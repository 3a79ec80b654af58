#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "server.h"

namespace rlock::model {

/// What becomes of a request that is sent. Late means that time passes before it, or its reply, arrives.
enum class Network : Byte { prompt, request_late, reply_late };

/// What `rlock run` does at each client (taker.cc, renewer.cc, keeper.cc), and what may happen to it.
class Step {
 public:
  Step(World& world, int client, Mutant mutant, Network network = Network::prompt)
      : w_(world), c_(world.client[client]), number_(client), mutant_(mutant), network_(network) {}

  /// Returns whether the transition is possible now; if so it has changed the world.
  using Transition = bool (Step::*)();

  bool take(Transition transition) { return (network_ == Network::prompt || suffer()) && (this->*transition)(); }

  // ---- transitions: taking the lock

  bool begin() {
    if (c_.phase != Phase::idle || !change_token())
      return false;
    c_.phase = Phase::asking;
    c_.once = true;
    return send(Verb::ask_once);
  }

  bool ask() {
    const bool awake = c_.phase == Phase::sleeping && (c_.sleep == 0 || !c_.subscribed);
    if (!awake && !has_to(Phase::asking))
      return false;
    c_.phase = Phase::asking;
    c_.sleep = 0;
    c_.subscribed = !c_.once;
    return send(c_.once ? Verb::ask_once : Verb::ask);
  }

  /// A client uses a lock that it was handed only if it knows for how long. The server counts from one of its
  /// questions, which must be the last that was answered.
  bool read_message() {
    if (c_.phase != Phase::sleeping || c_.message.kind == Message::Kind::none)
      return false;
    const Message message = std::exchange(c_.message, {});
    const Byte left = mutant_ == Mutant::credit_at_message ? confirm : message.ticks;
    if (message.kind == Message::Kind::wait) {
      c_.sleep = std::min(c_.sleep, message.ticks);
    } else if (message.unknown || left <= c_.lag) {
      c_.sleep = 0;
    } else {
      run_command(left - c_.lag);
    }
    return true;
  }

  /// Its deadline, or a signal, has come.
  bool stop_waiting() {
    if (c_.phase != Phase::sleeping)
      return false;
    c_.phase = Phase::withdrawing;
    return send(Verb::cancel);
  }

  bool withdraw() { return has_to(Phase::withdrawing) && send(Verb::cancel); }

  // ---- holding it

  bool renew() { return renewal_is_due() && send(Verb::renew); }

  bool end_command() {
    if (c_.phase != Phase::running)
      return false;
    stop_command();
    c_.dying = mutant_ == Mutant::release_before_reaping;
    return true;
  }

  bool reap() { return std::exchange(c_.dying, false); }

  bool release() { return has_to(Phase::releasing) && send(Verb::release); }

  // ---- late requests, replies and messages

  bool be_heard() {
    if (c_.exchange.verb == Verb::none || c_.exchange.executed)
      return false;
    execute();
    return true;
  }

  bool be_answered() {
    if (!c_.exchange.executed || c_.exchange.age == 0)
      return false;
    read_reply();
    return true;
  }

  bool give_up() {
    const Verb verb = c_.exchange.verb;
    if (verb == Verb::none || c_.exchange.age == 0)
      return false;
    leave_stray();
    if (verb == Verb::cancel) {
      after_withdrawal();
    } else if (verb == Verb::release) {
      rest(Phase::resting);
    }
    return true;
  }

  bool stray_arrives() {
    const Stray stray = std::exchange(c_.stray, {});
    if (stray.verb == Verb::none)
      return false;
    const Token token = stray.former ? former_token(number_) : present_token(number_);
    (void)Server{w_, mutant_}.serve(stray.verb, token, stray.ticket);
    return true;
  }

  bool stray_is_lost() { return std::exchange(c_.stray, {}).verb != Verb::none; }

  // ---- faults

  bool miss_message() {
    if (c_.message.kind == Message::Kind::none || !suffer())
      return false;
    c_.message = {};
    return true;
  }

  bool get_message_late() {
    if (c_.message.kind == Message::Kind::none || c_.message.late || !suffer())
      return false;
    c_.message.late = true;
    return true;
  }

  bool lose_subscription() {
    if (!c_.subscribed || c_.phase == Phase::dead || !suffer())
      return false;
    c_.subscribed = false;
    c_.message = {};
    return true;
  }

  /// Somebody forces it to give up the lock. If it does not hear that, its next renewal tells it.
  bool be_evicted() {
    return c_.phase == Phase::running && suffer() && Server{w_, mutant_}.evict(present_token(number_));
  }

  bool hear_of_eviction() {
    if (!w_.evicted || w_.holder != present_token(number_) || c_.phase != Phase::running)
      return false;
    stop_command();
    return true;
  }

  /// It dies for good, and its command with it.
  bool die() {
    if (c_.phase == Phase::idle || c_.phase == Phase::resting || c_.phase == Phase::dead || !suffer())
      return false;
    leave_stray();
    rest(Phase::dead);
    return true;
  }

  /// It dies, but the server still believes that it listens.
  bool die_unseen() {
    if (!c_.subscribed || !die())
      return false;
    c_.subscribed = true;
    return true;
  }

  // ---- time

  /// Whether it has something to do before time passes: only a fault makes anybody slow.
  bool is_busy() const {
    if (c_.exchange.verb != Verb::none)
      return c_.exchange.age == longest_request;
    const bool told = c_.message.kind != Message::Kind::none && !c_.message.late;
    const bool awake = c_.sleep == 0 || told || !c_.subscribed;
    return (c_.phase == Phase::sleeping && awake) || (c_.phase == Phase::running && c_.work_left == 0) ||
           renewal_is_due() || has_to(Phase::asking) || has_to(Phase::withdrawing) || has_to(Phase::releasing);
  }

  void tick() {
    if (c_.phase == Phase::resting)
      c_.phase = Phase::idle;
    if (c_.exchange.verb != Verb::none)
      ++c_.exchange.age;
    if (c_.phase == Phase::sleeping && c_.sleep != for_ever)
      --c_.sleep;
    if (c_.message.kind == Message::Kind::granted && c_.message.ticks > 0)
      --c_.message.ticks;
    if (c_.work_left > 0)
      --c_.work_left;
    if (c_.lease_left > 0 && --c_.lease_left == 0)
      stop_command();  // the guard kills it
  }

 private:
  bool has_to(Phase phase) const { return c_.phase == phase && c_.exchange.verb == Verb::none; }
  bool renewal_is_due() const { return has_to(Phase::running) && c_.lease_left < lease; }

  /// Makes the present token the former one, unless that is still remembered somewhere.
  bool change_token() {
    const bool remembered = c_.stray.verb != Verb::none && c_.stray.former;
    if (remembered || !Server{w_, mutant_}.rename(present_token(number_), former_token(number_)))
      return false;
    if (c_.stray.verb != Verb::none)
      c_.stray.former = true;
    return true;
  }

  void stop_command() {
    leave_stray();
    c_.phase = Phase::releasing;
    c_.lease_left = c_.work_left = 0;
  }

  void rest(Phase phase) {
    const Client old = std::exchange(c_, {});
    c_.phase = phase;
    c_.dying = old.dying;
    c_.watched = old.watched;
    c_.stray = old.stray;
  }

  // ---- requests and replies

  bool send(Verb verb) {
    c_.exchange = {verb, 0, false, 0, false, {}};
    if (network_ != Network::request_late)
      execute();
    if (network_ == Network::prompt)
      read_reply();
    return true;
  }

  void execute() {
    c_.exchange.executed = true;
    c_.exchange.lag = c_.exchange.age;
    c_.exchange.reply = Server{w_, mutant_}.serve(c_.exchange.verb, present_token(number_), c_.ticket);
    c_.exchange.recorded = c_.exchange.verb == Verb::ask && c_.exchange.reply.outcome == Outcome::busy;
  }

  void read_reply() {
    const Exchange e = std::exchange(c_.exchange, {});
    const Byte age = mutant_ == Mutant::credit_at_reply ? 0 : e.age;
    if (e.verb == Verb::cancel) {
      after_withdrawal();
    } else if (e.verb == Verb::release) {
      rest(Phase::resting);
    } else if (e.reply.outcome == Outcome::busy) {
      read_refusal(e);
    } else if (e.reply.outcome == Outcome::lost) {
      stop_command();
    } else if (e.verb == Verb::renew) {
      c_.lease_left = lease - age;
    } else {
      read_grant(age);
    }
  }

  void read_grant(Byte age) {
    if (age < usable) {
      run_command(lease - age);
    } else {
      c_.phase = Phase::withdrawing;
      c_.again = true;
      c_.ticket = 0;
    }
  }

  void run_command(Byte lease_left) {
    rest(Phase::running);
    c_.lease_left = lease_left;
    c_.work_left = longest_command;
  }

  /// After the first refusal it queues; once in the queue it sleeps.
  void read_refusal(const Exchange& e) {
    if (std::exchange(c_.once, false))
      return;
    c_.phase = Phase::sleeping;
    c_.sleep = e.reply.sleep;
    c_.ticket = e.reply.ticket;
    c_.lag = e.lag;
    c_.outdated = !e.recorded;
    c_.set_back = false;
    if (c_.message.kind == Message::Kind::granted)
      c_.message.unknown = !(c_.message.unknown && e.recorded);  // unless it counts from this very question
  }

  void after_withdrawal() {
    if (!c_.again || (mutant_ != Mutant::reuse_token && !change_token())) {
      rest(Phase::resting);
    } else {
      c_.phase = Phase::asking;
      c_.message = {};  // it was for another token
      c_.again = c_.once = false;
    }
  }

  /// Turns a request that nobody waits for any more into a stray one.
  void leave_stray() {
    const Exchange e = std::exchange(c_.exchange, {});
    if (e.verb != Verb::none && !e.executed && c_.stray.verb == Verb::none)
      c_.stray = {e.verb, false, c_.ticket};
  }

  bool suffer() {
    if (w_.faults_left == 0)
      return false;
    --w_.faults_left;
    c_.hurt = true;
    return true;
  }

  World& w_;
  Client& c_;
  int number_;
  Mutant mutant_;
  Network network_;
};

struct Action {
  std::string_view name;
  Step::Transition transition;
  bool sends = false;  // whether it sends a request, which may be late
};

inline constexpr std::array<Action, 21> actions{{
    {"begins to ask", &Step::begin, true},
    {"asks", &Step::ask, true},
    {"reads a message", &Step::read_message},
    {"stops waiting", &Step::stop_waiting, true},
    {"gives a late grant back", &Step::withdraw, true},
    {"renews", &Step::renew, true},
    {"ends its command", &Step::end_command},
    {"has reaped its command", &Step::reap},
    {"releases", &Step::release, true},
    {"is heard at last", &Step::be_heard},
    {"is answered at last", &Step::be_answered},
    {"waits no longer for the answer", &Step::give_up},
    {"is heard by a request that it had given up", &Step::stray_arrives},
    {"is never heard by a request that it had given up", &Step::stray_is_lost},
    {"misses a message", &Step::miss_message},
    {"gets a message late", &Step::get_message_late},
    {"loses its subscription", &Step::lose_subscription},
    {"is evicted", &Step::be_evicted},
    {"hears that it is evicted", &Step::hear_of_eviction},
    {"dies", &Step::die},
    {"dies unseen", &Step::die_unseen},
}};

}  // namespace rlock::model
