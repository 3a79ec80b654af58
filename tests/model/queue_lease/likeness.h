#pragma once

#include <algorithm>
#include <numeric>
#include <utility>

#include "world.h"

/// Worlds that differ only in the numbers of their tickets, or in which clients have swapped roles, count as one. That
/// makes them few enough to look at all of them.
namespace rlock::model {

/// Renumbers the tickets to 1, 2, 3 in their order.
inline void number_tickets_anew(World& w) {
  std::array<Byte*, tokens + 3 * clients> all{};
  std::size_t count = 0;
  const auto add = [&](Byte& ticket) {
    if (ticket != 0)
      all[count++] = &ticket;
  };
  for (Waiter& waiter : w.queue) add(waiter.ticket);
  for (Client& c : w.client) {
    add(c.ticket);
    add(c.exchange.reply.ticket);
    add(c.stray.ticket);
  }
  std::sort(all.begin(), all.begin() + count, [](const Byte* a, const Byte* b) { return *a < *b; });
  Byte last = 0, number = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (*all[i] != last) {
      last = *all[i];
      ++number;
    }
    *all[i] = number;
  }
}

/// What the server has of a token, which tells clients apart that are alike otherwise.
inline int standing(const World& w, Token token) {
  if (w.holder == token)
    return -1;
  for (int i = 0; i < w.queued; ++i) {
    if (w.queue[i].token == token)
      return i;
  }
  return w.queued;
}

/// Sorts the clients, so that worlds in which they have swapped roles become one. Returns who is where now.
inline std::array<Byte, clients> rank_clients(const World& w) {
  std::array<Byte, clients> order{};
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&w](Byte a, Byte b) {
    if (w.client[a].watched != w.client[b].watched)
      return w.client[a].watched > w.client[b].watched;
    if (const int difference = std::memcmp(&w.client[a], &w.client[b], sizeof(Client)))
      return difference < 0;
    const auto standings = [&w](Byte c) {
      return std::pair{standing(w, present_token(c)), standing(w, former_token(c))};
    };
    return standings(a) < standings(b);
  });
  return order;
}

inline void arrange(World& w, const std::array<Byte, clients>& order) {
  const World old = w;
  std::array<Token, tokens + 1> renamed{};
  renamed[nobody] = nobody;
  for (Byte i = 0; i < clients; ++i) {
    w.client[i] = old.client[order[i]];
    renamed[present_token(order[i])] = present_token(i);
    renamed[former_token(order[i])] = former_token(i);
  }
  w.holder = renamed[w.holder];
  for (int i = 0; i < w.queued; ++i) w.queue[i].token = renamed[w.queue[i].token];
}

}  // namespace rlock::model
