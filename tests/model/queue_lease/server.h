#pragma once

#include <algorithm>
#include <climits>
#include <string>

#include "world.h"

namespace rlock::model {

/// What is broken on purpose.
enum class Mutant : Byte {
  none,
  credit_at_reply,           // a lease counts from when its reply came
  credit_at_message,         // the lease of a lock that was handed over counts from when the message was read
  release_before_reaping,    // the lock is released while the command still runs
  wake_without_reservation,  // a woken waiter must ask, and no seat is kept for it
  cancel_without_walk,       // a waiter that leaves the queue does not serve the next one
  sleep_until_woken,         // no waiter asks by itself
  hand_over_for_good,        // a waiter that is handed the lock has it until it releases it
  evict_at_once,             // whoever evicts a holder takes the lock from it before its command has ended
  renew_the_evicted,         // a holder that did not hear of its eviction keeps the lock
  reuse_token,               // a client that has given back a late grant asks again with the same token
};

/// Thrown when something happens that must not; clients are named by their numbers.
struct Violation {
  std::string what;
};

/// What the scripts in src/lock do, each in one step: acquire, renew, release, cancel and force, and the walk of
/// queue.lua.
class Server {
 public:
  Server(World& world, Mutant mutant) : w_(world), mutant_(mutant) {}

  Reply serve(Verb verb, Token token, Byte ticket) {
    switch (verb) {
      case Verb::ask_once:
      case Verb::ask:
        return acquire(token, ticket, verb == Verb::ask);
      case Verb::renew:
        return renew(token);
      case Verb::release:
        return release(token);
      case Verb::cancel:
      case Verb::none:
        break;
    }
    return cancel(token);
  }

  /// Returns false if it does not hold, or has been evicted already.
  bool evict(Token token) {
    if (w_.holder != token || w_.evicted)
      return false;
    w_.evicted = true;
    if (mutant_ == Mutant::evict_at_once) {
      free_lock();
      serve_next();
    }
    return true;
  }

  /// Returns false if the server still remembers the new name.
  bool rename(Token token, Token name) {
    if (w_.holder == name || find(name) >= 0)
      return false;
    if (w_.holder == token)
      w_.holder = name;
    if (const int place = find(token); place >= 0)
      w_.queue[place].token = name;
    return true;
  }

 private:
  Reply acquire(Token token, Byte ticket, bool wait) {
    if (w_.holder == token) {
      w_.expires = lease;
      return {Outcome::granted, 0, 0};
    }
    if (wait)
      ticket = join_queue(token, ticket);
    const int place = find(token);
    const int score = place < 0 ? INT_MAX : w_.queue[place].ticket;
    const auto [our_turn, queued] = walk(token, false);
    if (!our_turn)
      return {Outcome::busy, sleep(token, wait), ticket};
    check_order(token, score);
    leave_queue(token);
    grant(token, lease);
    if (queued)
      serve_next();
    return {Outcome::granted, 0, 0};
  }

  Reply renew(Token token) {
    if (w_.holder != token || (w_.evicted && mutant_ != Mutant::renew_the_evicted))
      return {Outcome::lost, 0, 0};
    if (w_.evicted)
      throw Violation{name(token) + " is renewed though it was evicted"};
    w_.expires = lease;
    return {Outcome::done, 0, 0};
  }

  Reply release(Token token) {
    if (w_.holder != token)
      return {Outcome::lost, 0, 0};
    free_lock();
    serve_next();
    return {Outcome::done, 0, 0};
  }

  Reply cancel(Token token) {
    leave_queue(token);
    if (w_.holder == token)
      free_lock();
    if (mutant_ != Mutant::cancel_without_walk)
      serve_next();
    return {Outcome::done, 0, 0};
  }

  void grant(Token token, Byte expires) {
    w_.holder = token;
    w_.expires = expires;
    w_.evicted = false;
  }

  void free_lock() {
    w_.holder = nobody;
    w_.expires = 0;
    w_.evicted = false;
  }

  // ---- the queue

  int find(Token token) const {
    for (int i = 0; i < w_.queued; ++i) {
      if (w_.queue[i].token == token)
        return i;
    }
    return -1;
  }

  void leave_queue(Token token) {
    const int place = find(token);
    if (place < 0)
      return;
    std::copy(w_.queue.begin() + place + 1, w_.queue.begin() + w_.queued, w_.queue.begin() + place);
    w_.queue[--w_.queued] = {};
  }

  /// Returns the ticket, a new one if the waiter has none. A waiter that is in the queue already keeps its place.
  Byte join_queue(Token token, Byte ticket) {
    if (ticket == 0)
      ticket = new_ticket();
    if (find(token) >= 0)
      return ticket;
    int place = w_.queued++;
    for (; place > 0 && w_.queue[place - 1].ticket > ticket; --place) w_.queue[place] = w_.queue[place - 1];
    w_.queue[place] = {token, ticket, longest_sleep + confirm + 1};
    return ticket;
  }

  /// A ticket larger than any that anybody remembers.
  Byte new_ticket() const {
    Byte last = 0;
    for (const Waiter& waiter : w_.queue) last = std::max(last, waiter.ticket);
    for (const Client& c : w_.client) last = std::max({last, c.ticket, c.exchange.reply.ticket, c.stray.ticket});
    return static_cast<Byte>(last + 1);
  }

  bool listens(Token token) const { return is_present(token) && client_of(token).subscribed; }

  void tell(Token token, Message message) {
    Client& c = client_of(token);
    if (!listens(token) || c.phase == Phase::dead)
      return;
    if (c.message.kind == Message::Kind::wait && message.kind == Message::Kind::wait)
      message = {message.kind, std::min(message.ticks, c.message.ticks), false, c.message.late};
    c.message = message;
  }

  void hand_over(Token token) {
    if (mutant_ == Mutant::wake_without_reservation) {
      tell(token, {Message::Kind::wait, 0, false, false});
      return;
    }
    leave_queue(token);
    grant(token, mutant_ == Mutant::hand_over_for_good ? for_ever : confirm);
    tell(token, {Message::Kind::granted, confirm, client_of(token).outdated, false});
  }

  /// Notes that all waiters sleep until a time that they were told when others stood before them.
  void set_back_all() {
    for (int i = 0; i < w_.queued; ++i) client_of(w_.queue[i].token).set_back = true;
  }

  struct Walked {
    bool our_turn, queued;
  };

  Walked walk(Token me, bool arm) {
    while (w_.queued > 0 && w_.queue[0].token != me) {
      const Waiter first = w_.queue[0];
      if (first.alive == 0 || !listens(first.token)) {
        check_death(first.token);
        leave_queue(first.token);
        set_back_all();
      } else if (w_.holder == nobody) {
        hand_over(first.token);
        if (!arm)
          set_back_all();
        if (mutant_ == Mutant::wake_without_reservation)
          return {me != nobody, true};
      } else {
        if (arm)
          tell(first.token, {Message::Kind::wait, std::min(w_.expires, look), false, false});
        return {false, true};
      }
    }
    return {me != nobody && w_.holder == nobody, w_.queued > 0};
  }

  void serve_next() { walk(nobody, true); }

  /// How long a refused client may sleep. A waiter counts as alive for a little longer.
  Byte sleep(Token token, bool wait) {
    const int rank = wait ? find(token) : 0;
    int ticks = std::clamp<int>(std::min(w_.expires + rank * confirm, look * (rank + 1)), 1, longest_sleep);
    if (mutant_ == Mutant::sleep_until_woken)
      ticks = for_ever;
    if (wait) {
      w_.queue[rank].alive = static_cast<Byte>(std::min<int>(ticks + confirm + 1, for_ever));
      note_question(token);
    }
    return static_cast<Byte>(ticks);
  }

  void note_question(Token token) {
    Client& c = client_of(token);
    if (!is_present(token))
      return;
    c.outdated = true;
    c.exchange.recorded = false;
  }

  // ---- what must hold

  void check_order(Token token, int score) const {
    for (int i = 0; i < w_.queued; ++i) {
      if (w_.queue[i].ticket < score)
        throw Violation{name(token) + " passes " + name(w_.queue[i].token) + ", which came before it"};
    }
  }

  void check_death(Token token) const {
    const Client& c = client_of(token);
    if (is_present(token) && c.waits() && !c.hurt)
      throw Violation{name(token) + " is taken for dead though nothing has happened to it"};
  }

  static std::string name(Token token) { return std::to_string(token / 2); }

  Client& client_of(Token token) { return w_.client[token / 2]; }
  const Client& client_of(Token token) const { return w_.client[token / 2]; }

  World& w_;
  Mutant mutant_;
};

}  // namespace rlock::model
