#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rlock::model {

using Byte = std::uint8_t;

constexpr int clients = 3;

// Times are in ticks of about a second. They keep the order of the real times, but not their ratios.
constexpr Byte lease = 3;
constexpr Byte usable = 2;           // how old a grant may be when a command is started on it
constexpr Byte longest_request = 2;  // how long an answer is waited for
constexpr Byte longest_command = 4;  // longer than a lease
constexpr Byte confirm = 1;          // the short lease of a hand-over, and GRACE of queue.lua
constexpr Byte look = 2;             // LOOK of queue.lua
constexpr Byte longest_sleep = 15;   // LONGEST of queue.lua
constexpr Byte for_ever = 255;

/// Each attempt of a client has a token of its own. Only the last two are remembered: a client begins a new attempt
/// only when the last but one is forgotten everywhere.
using Token = Byte;
constexpr int tokens = 2 * clients;
constexpr Token nobody = tokens;
constexpr Token present_token(int client) { return static_cast<Token>(2 * client); }
constexpr Token former_token(int client) { return static_cast<Token>(2 * client + 1); }
constexpr bool is_present(Token token) { return token % 2 == 0; }

/// A place in the queue, with what the hash of waiters holds for it.
struct Waiter {
  Token token;
  Byte ticket;
  Byte alive;  // 0: taken for dead; else for how long it counts as alive, plus 1
};

enum class Verb : Byte { none, ask_once, ask, renew, release, cancel };
enum class Outcome : Byte { none, granted, busy, done, lost };

struct Reply {
  Outcome outcome;
  Byte sleep;
  Byte ticket;
};

/// Tells a waiter to ask again after that many ticks, or that it has the lock for that many from now on.
struct Message {
  enum class Kind : Byte { none, wait, granted };
  Kind kind;
  Byte ticks;
  Byte unknown;  // it counts from a question whose answer the waiter has not seen
  Byte late;     // it is delayed by a fault
};

/// A request that is late, or whose reply is. (Others are done in one step.)
struct Exchange {
  Verb verb;
  Byte age;       // since it was sent
  Byte executed;  // the server has executed it, and the reply is on its way
  Byte lag;       // its age when it was executed
  Byte recorded;  // the server counts from this question
  Reply reply;
};

/// A request that was given up, but may still arrive.
struct Stray {
  Verb verb;
  Byte former;  // it belongs to the attempt before this one
  Byte ticket;
};

enum class Phase : Byte {
  idle,
  resting,  // idle until time passes
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
  Byte sleep;       // how much of its sleep is left
  Byte lag;         // the age at which its last answered question reached the server
  Byte outdated;    // the server counts from a later question
  Byte lease_left;  // as the client believes
  Byte work_left;   // how long the command runs at most
  Byte dying;       // the command is not dead yet, but all is done as if it were (a mutant)
  Byte once;        // it asks without queueing
  Byte again;       // it cancels only to ask again
  Byte hurt;        // a fault has hit this attempt
  Byte set_back;    // the waiters before it have gone since it fell asleep, and nobody told it
  Byte watched;     // it is the client that is checked for starvation
  Message message;
  Exchange exchange;
  Stray stray;

  bool waits() const {
    return phase == Phase::asking || phase == Phase::sleeping || (phase == Phase::withdrawing && again);
  }
  bool commands() const { return phase == Phase::running || dying; }
};

/// One server with one exclusive lock, and three clients. All times are counted down, so that worlds which differ only
/// in when they happen are the same.
struct World {
  Token holder;
  Byte expires;
  Byte evicted;  // the holder must give up the lock, and is not renewed any more
  Byte faults_left;
  Byte queued;
  std::array<Waiter, tokens> queue;  // by ticket
  std::array<Client, clients> client;

  friend bool operator==(const World& a, const World& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
};
static_assert(std::has_unique_object_representations_v<World>, "worlds are compared byte by byte");

}  // namespace rlock::model
