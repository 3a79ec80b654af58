#pragma once

#include "client.h"
#include "likeness.h"

namespace rlock::model {

/// What one client does, or what happens to it; or time passes for all.
struct Move {
  Byte client = clients;
  Byte action = 0;
  Network network = Network::prompt;

  bool is_tick() const { return client == clients; }
};

inline void check_exclusion(const World& w) {
  int running = clients;
  for (int i = 0; i < clients; ++i) {
    if (w.client[i].commands() && std::exchange(running, i) != clients)
      throw Violation{"two commands run at once"};
  }
}

/// Before time passes the lock must not lie free while the first in the queue sleeps. Excepted is one that a fault has
/// hit, or that was told to sleep a second longer for each waiter before it, when those have gone unnoticed since.
inline void check_wake_up(const World& w) {
  if (w.holder != nobody || w.queued == 0)
    return;
  const Waiter& first = w.queue[0];
  const Client& c = w.client[first.token / 2];
  if (is_present(first.token) && c.phase == Phase::sleeping && !c.hurt && !c.set_back)
    throw Violation{"the lock lies free while " + std::to_string(first.token / 2) + " sleeps"};
}

inline bool tick(World& w, Mutant mutant) {
  for (int i = 0; i < clients; ++i) {
    if (Step{w, i, mutant}.is_busy())
      return false;
  }
  check_wake_up(w);
  for (int i = 0; i < clients; ++i) Step{w, i, mutant}.tick();
  if (w.expires > 0 && w.expires != for_ever && --w.expires == 0) {
    w.holder = nobody;
    w.evicted = false;
  }
  for (int i = 0; i < w.queued; ++i) {
    Waiter& waiter = w.queue[i];
    if (waiter.alive > 0 && waiter.alive != for_ever)
      --waiter.alive;
  }
  return true;
}

/// Returns whether the move was possible; `world` is then the next one. Throws Violation.
inline bool make(const Move& move, World& world, Mutant mutant) {
  const bool possible = move.is_tick()
                            ? tick(world, mutant)
                            : Step{world, move.client, mutant, move.network}.take(actions[move.action].transition);
  if (possible)
    check_exclusion(world);
  return possible;
}

/// A move after which something is true that must not be.
struct BadMove {
  Move move;
  Violation violation;
};

/// Calls visit(move, world) for everything that may happen next. Throws BadMove.
template <typename Visit>
void for_each_next(const World& world, Mutant mutant, Visit visit) {
  const auto attempt = [&](const Move& move) {
    World next = world;
    try {
      if (!make(move, next, mutant))
        return;
    } catch (const Violation& violation) {
      throw BadMove{move, violation};
    }
    number_tickets_anew(next);
    arrange(next, rank_clients(next));
    visit(move, next);
  };
  for (Byte client = 0; client < clients; ++client) {
    for (Byte action = 0; action < actions.size(); ++action) {
      attempt({client, action, Network::prompt});
      if (actions[action].sends) {
        attempt({client, action, Network::request_late});
        attempt({client, action, Network::reply_late});
      }
    }
  }
  attempt({});
}

}  // namespace rlock::model
