#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "server.h"

namespace rlock::model {

/// What becomes of a request that is sent: late is what comes after time has passed.
enum class Network : Byte { prompt, request_late, reply_late };

/// What `rlock run` does at each client (queue.cc, renewer.cc, keeper.cc), and what may befall it.
class Step {
 public:
  Step(World& world, int client, Mutant mutant, Network network = Network::prompt)
      : w_(world), c_(world.client[client]), number_(client), mutant_(mutant), network_(network) {}

  /// Returns whether it is possible now, and has changed the world if so.
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
    const bool awake = c_.phase == Phase::sleeping && c_.message == 0 && (c_.sleep == 0 || !c_.subscribed);
    if (!awake && !has_to(Phase::asking))
      return false;
    c_.phase = Phase::asking;
    c_.sleep = 0;
    c_.subscribed = !c_.once;
    return send(c_.once ? Verb::ask_once : Verb::ask);
  }

  bool read_message() {
    if (c_.phase != Phase::sleeping || c_.message == 0)
      return false;
    c_.sleep = std::min<Byte>(c_.sleep, std::exchange(c_.message, 0) - 1);
    return true;
  }

  /// Its deadline has come, or a signal.
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

  // ---- what was late

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
    if (c_.message == 0 || !suffer())
      return false;
    c_.message = 0;
    return true;
  }

  bool lose_subscription() {
    if (!c_.subscribed || c_.phase == Phase::dead || !suffer())
      return false;
    c_.subscribed = false;
    c_.message = 0;
    return true;
  }

  /// For good, and its command with it.
  bool die() {
    if (c_.phase == Phase::idle || c_.phase == Phase::resting || c_.phase == Phase::dead || !suffer())
      return false;
    leave_stray();
    rest(Phase::dead);
    return true;
  }

  /// The server goes on believing that it listens.
  bool die_unseen() {
    if (!c_.subscribed || !die())
      return false;
    c_.subscribed = true;
    return true;
  }

  // ---- time

  /// Has something to do before time passes: nobody is slow but by a fault.
  bool is_busy() const {
    if (c_.exchange.verb != Verb::none)
      return c_.exchange.age == longest_request;
    const bool awake = c_.sleep == 0 || c_.message != 0 || !c_.subscribed;
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
    if (c_.work_left > 0)
      --c_.work_left;
    if (c_.lease_left > 0 && --c_.lease_left == 0)
      stop_command();  // the guard kills it
  }

 private:
  bool has_to(Phase phase) const { return c_.phase == phase && c_.exchange.verb == Verb::none; }
  bool renewal_is_due() const { return has_to(Phase::running) && c_.lease_left < lease; }

  /// The present one becomes the former one, if that is forgotten.
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
    c_.exchange = {verb, 0, false, {}};
    if (network_ != Network::request_late)
      execute();
    if (network_ == Network::prompt)
      read_reply();
    return true;
  }

  void execute() {
    c_.exchange.executed = true;
    c_.exchange.reply = Server{w_, mutant_}.serve(c_.exchange.verb, present_token(number_), c_.ticket);
  }

  void read_reply() {
    const Exchange e = std::exchange(c_.exchange, {});
    const Byte age = mutant_ == Mutant::credit_at_reply ? 0 : e.age;
    if (e.verb == Verb::cancel) {
      after_withdrawal();
    } else if (e.verb == Verb::release) {
      rest(Phase::resting);
    } else if (e.reply.outcome == Outcome::busy) {
      read_refusal(e.reply);
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
      rest(Phase::running);
      c_.lease_left = lease - age;
      c_.work_left = longest_command;
    } else {
      c_.phase = Phase::withdrawing;
      c_.again = true;
      c_.ticket = 0;
    }
  }

  /// Refused at once it queues; in the queue it sleeps.
  void read_refusal(const Reply& reply) {
    if (std::exchange(c_.once, false))
      return;
    c_.phase = Phase::sleeping;
    c_.sleep = reply.sleep;
    c_.ticket = reply.ticket;
    c_.set_back = false;
  }

  void after_withdrawal() {
    if (!c_.again || (mutant_ != Mutant::reuse_token && !change_token())) {
      rest(Phase::resting);
    } else {
      c_.phase = Phase::asking;
      c_.again = c_.once = false;
    }
  }

  /// What was sent and is waited for no longer.
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
  bool sends = false;  // a request, that may be late
};

inline constexpr std::array<Action, 18> actions{{
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
    {"is heard, of what it had given up", &Step::stray_arrives},
    {"is never heard, of what it had given up", &Step::stray_is_lost},
    {"misses a message", &Step::miss_message},
    {"loses its subscription", &Step::lose_subscription},
    {"dies", &Step::die},
    {"dies unseen", &Step::die_unseen},
}};

}  // namespace rlock::model
