#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rlock::model {

using Byte = std::uint8_t;

constexpr int clients = 3;

// In ticks, each of which is about a second: the order of the real times is kept, not their ratios.
constexpr Byte lease = 3;
constexpr Byte usable = 2;           // how old a grant may be when a command is started on it
constexpr Byte longest_request = 2;  // how long an answer is awaited
constexpr Byte longest_command = 4;  // longer than a lease
constexpr Byte confirm = 1;          // CONFIRM of common.lua
constexpr Byte look = 2;             // LOOK of common.lua
constexpr Byte longest_sleep = 15;   // LONGEST of common.lua
constexpr Byte for_ever = 255;

/// Each attempt of a client has its own. Only what an attempt and the one before it have left behind is remembered: a
/// client begins a new one when the last but one is forgotten everywhere.
using Token = Byte;
constexpr int tokens = 2 * clients;
constexpr Token nobody = tokens;
constexpr Token present_token(int client) { return static_cast<Token>(2 * client); }
constexpr Token former_token(int client) { return static_cast<Token>(2 * client + 1); }
constexpr bool is_present(Token token) { return token % 2 == 0; }

/// A place in the queue, with what the hash of waiters has about it.
struct Waiter {
  Token token;
  Byte ticket;
  Byte alive;  // 0: taken for dead, else how long it is believed to live, plus 1
};

enum class Verb : Byte { none, ask_once, ask, renew, release, cancel };
enum class Outcome : Byte { none, granted, busy, done, lost };

struct Reply {
  Outcome outcome;
  Byte sleep;
  Byte ticket;
};

/// To a waiter: to ask again after so long, or that it has the lock, for so long from now.
struct Message {
  enum class Kind : Byte { none, wait, granted };
  Kind kind;
  Byte ticks;
  Byte unknown;  // counts from a question whose answer the waiter has not seen
  Byte late;     // by a fault
};

/// A request that is late, or its reply that is. (What is not late is done in one step.)
struct Exchange {
  Verb verb;
  Byte age;       // since it was sent
  Byte executed;  // the reply is on its way
  Byte lag;       // its age by then
  Byte recorded;  // the server counts from this question
  Reply reply;
};

/// A request that was given up, and may arrive all the same.
struct Stray {
  Verb verb;
  Byte former;  // of the attempt before this one
  Byte ticket;
};

enum class Phase : Byte {
  idle,
  resting,  // idle, and begins nothing before time passes
  asking,
  sleeping,
  withdrawing,
  running,
  releasing,
  dead,
};

struct Client {
  Phase phase;
  Byte subscribed;  // as the server sees it
  Byte ticket;      // as the client knows it; 0: none
  Byte sleep;       // left of it
  Byte lag;         // the age at which its last question that was answered came to the server
  Byte outdated;    // the server counts from a later one
  Byte lease_left;  // as the client believes
  Byte work_left;   // of the command, at most
  Byte dying;       // the command is not dead yet, though all is done as if it were (a mutant)
  Byte once;        // asks without queueing
  Byte again;       // withdraws only to ask anew
  Byte hurt;        // a fault has met this attempt
  Byte set_back;    // since it fell asleep, those before it have gone, and nobody told it
  Byte watched;     // whether it starves is looked for
  Message message;
  Exchange exchange;
  Stray stray;

  bool waits() const {
    return phase == Phase::asking || phase == Phase::sleeping || (phase == Phase::withdrawing && again);
  }
  bool commands() const { return phase == Phase::running || dying; }
};

/// One server with one exclusive lock, and three clients. All times are counted down, so that worlds that differ only
/// in when they happen are one and the same.
struct World {
  Token holder;
  Byte expires;
  Byte faults_left;
  Byte queued;
  std::array<Waiter, tokens> queue;  // by ticket
  std::array<Client, clients> client;

  friend bool operator==(const World& a, const World& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
};
static_assert(std::has_unique_object_representations_v<World>, "worlds are compared byte by byte");

}  // namespace rlock::model
