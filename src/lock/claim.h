#pragma once

#include <optional>
#include <string>

#include "base/duration.h"
#include "lock/answer.h"
#include "lock/owner.h"
#include "lock/token.h"

namespace rlock::lock {

/// How many replicas must have a grant or a renewal before it counts, and how long they may take.
struct Replicas {
  int count = 1;
  Milliseconds limit{1000};
};

/// Who asks for a lock, and on which terms.
struct Claim {
  Token token;
  Level level;
  Capacity capacity;
  Milliseconds ttl;
  Milliseconds min_hold{0};
  std::optional<Replicas> replicas{};
  Owner owner;
  std::optional<Token> waiter{};  // in a quorum, where each question has a token of its own: identifies the waiter
  bool nested = false;            // the token is an enclosing run's, which took the lock on terms of its own
  bool kept = false;              // renewed by a keeper that listens, and gives up the lock when it is told to
  bool polls = false;             // may not listen while it waits
  bool latest = false;            // --latest
  bool replace = false;           // --replace
  std::optional<int> max_waiting{};
  std::optional<std::string> once{};
  std::optional<Milliseconds> once_per{};
};

/// How to ask: once, queue, re-enter or restore; and where the asker stands, if it has asked before.
struct Question {
  enum class How {
    once,     // take it, or learn who holds it
    queue,    // take it, or join the queue
    reenter,  // take it only if the token holds it already, else Lost
    restore,  // take it past any queue: this server of a quorum has lost what most others still have
  };
  How how = How::once;
  std::string ticket;      // of its place in the queue, if it has one already
  Milliseconds waited{0};  // since it first asked; to restore or re-enter: since it was granted
};

}  // namespace rlock::lock
