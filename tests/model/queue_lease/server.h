#pragma once

#include <algorithm>
#include <string>

#include "world.h"

namespace rlock::model {

/// What is broken on purpose.
enum class Mutant : Byte {
  none,
  credit_at_reply,           // a lease counts from when the reply came
  release_before_reaping,    // the lock is released while the command still runs
  wake_without_reservation,  // who is woken has no seat reserved
  cancel_without_walk,       // who leaves the queue does not pass a wake-up on
  sleep_until_woken,         // no waiter looks by itself
  believe_the_dead,          // who listens is alive, however long it says nothing
  reuse_token,               // who has given a late grant back asks again with the same token
};

/// What must not happen has happened; clients are called by their numbers.
struct Violation {
  std::string what;
};

/// What the scripts in src/lock do, each in one step: acquire, renew, release and cancel, and the walk of common.lua.
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

  /// False when the new name is remembered.
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
    const int score = place < 0 ? 255 : w_.queue[place].ticket;
    count_seats();
    const auto [granted, queued] = walk(token, false);
    if (!granted)
      return {Outcome::busy, sleep(token, wait), ticket};
    check_order(token, score);
    w_.holder = token;
    w_.expires = lease;
    count_seats();
    if (queued)
      walk(nobody, true);
    return {Outcome::granted, 0, 0};
  }

  Reply renew(Token token) {
    if (w_.holder != token)
      return {Outcome::lost, 0, 0};
    w_.expires = lease;
    return {Outcome::done, 0, 0};
  }

  Reply release(Token token) {
    if (w_.holder != token)
      return {Outcome::lost, 0, 0};
    free_lock();
    wake_next();
    return {Outcome::done, 0, 0};
  }

  Reply cancel(Token token) {
    leave_queue(token);
    if (w_.holder == token)
      free_lock();
    if (mutant_ != Mutant::cancel_without_walk)
      wake_next();
    return {Outcome::done, 0, 0};
  }

  void free_lock() {
    w_.holder = nobody;
    w_.expires = 0;
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

  /// Returns the ticket, a new one to who has none. Who is in the queue already keeps its place whatever it says.
  Byte join_queue(Token token, Byte ticket) {
    if (ticket == 0)
      ticket = new_ticket();
    if (find(token) >= 0)
      return ticket;
    int place = w_.queued++;
    for (; place > 0 && w_.queue[place - 1].ticket > ticket; --place) w_.queue[place] = w_.queue[place - 1];
    w_.queue[place] = {token, ticket, 0, longest_sleep + claim_time + 1};
    return ticket;
  }

  /// Larger than any that is remembered, by whomever.
  Byte new_ticket() const {
    Byte last = 0;
    for (const Waiter& waiter : w_.queue) last = std::max(last, waiter.ticket);
    for (const Client& c : w_.client) last = std::max({last, c.ticket, c.exchange.reply.ticket, c.stray.ticket});
    return static_cast<Byte>(last + 1);
  }

  bool listens(Token token) const { return is_present(token) && client_of(token).subscribed; }

  void tell(Token token, Byte ms) {
    Client& c = client_of(token);
    if (listens(token) && c.phase != Phase::dead)
      c.message = c.message == 0 ? ms + 1 : std::min<Byte>(c.message, ms + 1);
  }

  // ---- seats: there is one, of the holder or reserved for who was woken

  void count_seats() { seat_ends_ = w_.holder == nobody ? 0 : w_.expires; }
  bool fits() const { return seat_ends_ == 0; }
  void take_seat(Byte until) { seat_ends_ = seat_ends_ == 0 ? until : std::min(seat_ends_, until); }

  bool is_dead(const Waiter& w) const { return mutant_ != Mutant::believe_the_dead && (w.alive == 0 || w.claim == 1); }

  struct Walked {
    bool granted, queued;
  };

  Walked walk(Token me, bool arm) {
    bool granted = false;
    int rank = 0;
    while (rank < w_.queued) {
      Waiter& w = w_.queue[rank];
      if (w.token == me) {
        if (!fits())
          return {granted, true};
        leave_queue(me);
        take_seat(claim_time);
        granted = true;
      } else if (is_dead(w) || (w.claim == 0 && !listens(w.token))) {
        check_death(w.token);
        leave_queue(w.token);
        for (int behind = rank; behind < w_.queued; ++behind) client_of(w_.queue[behind].token).set_back = true;
      } else if (fits()) {
        if (w.claim == 0) {
          tell(w.token, 0);
          w.claim = claim_time + 1;
        }
        if (mutant_ != Mutant::wake_without_reservation)
          take_seat(std::max<Byte>(1, w.claim - 1));
        ++rank;
      } else {
        if (arm)
          tell(w.token, std::clamp<Byte>(seat_ends_, 1, look));
        return {granted, true};
      }
    }
    return {granted || (me != nobody && fits()), rank > 0};
  }

  void wake_next() {
    count_seats();
    walk(nobody, true);
  }

  /// How long who was refused may sleep. It counts as alive a little longer, and gives up any claim.
  Byte sleep(Token token, bool wait) {
    const int rank = wait ? find(token) : 0;
    int ms = std::clamp<int>(std::min(seat_ends_ + rank * claim_time, look * (rank + 1)), 1, longest_sleep);
    if (mutant_ == Mutant::sleep_until_woken)
      ms = for_ever;
    if (wait) {
      w_.queue[rank].claim = 0;
      w_.queue[rank].alive = static_cast<Byte>(std::min<int>(ms + claim_time + 1, for_ever));
    }
    return static_cast<Byte>(ms);
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
  Byte seat_ends_ = 0;  // 0: nobody has the seat
};

}  // namespace rlock::model
