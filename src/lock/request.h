#pragma once

#include <optional>
#include <string>

#include "base/calendar.h"
#include "base/duration.h"
#include "lock/answer.h"
#include "lock/name.h"
#include "lock/owner.h"
#include "lock/script_call.h"
#include "lock/token.h"

namespace rlock::lock {

// What is asked of the scripts. Hides the order of their keys and words.

/// How many replicas must have a grant or a renewal before it counts, and how long they may take.
struct Replicas {
  int count = 1;
  Milliseconds limit{1000};
};

/// --backoff: for how long the lock cools after a failure, and at most after further ones.
struct Cooldown {
  Milliseconds first, most;
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
  bool has_keeper = false;        // which renews it, listens, and gives up the lock when it is told to
  bool polls = false;             // may not listen while it waits
  bool latest = false;
  bool replace = false;
  bool first = false;
  std::optional<int> max_waiting{};
  std::optional<std::string> once{};
  std::optional<Milliseconds> once_per{};
  std::optional<Cooldown> backoff{};
  std::optional<int> attempts{};
  std::optional<Slot> calendar_slot{};  // --once-per day: the one in which the run was started
};

/// For what a fence is settled: for an acquisition that has it already, or for a new one, which is counted. In the
/// order of the words 0, 1 and 2 of settle.lua.
enum class Settling { again, at_once, after_wait };

/// How a command ended, for the history.
struct End {
  std::optional<int> status{};
  bool is_excused = false;  // told to stop, or not started, so that this is no failure
  std::string word{};  // empty: the status tells; else signal:N, evicted,BY, replaced,BY, lost, timeout, interrupted,
                       // ended or released
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
  std::string ticket{};    // of its place in the queue, if it has one already
  Milliseconds waited{0};  // since it first asked; to restore or re-enter: since it was granted
};

// Every call of a script; the first lines of each state its contract.

/// `max_lease`: of the quorum; 0 for one server.
Request acquire_request(const LockName& name, const Claim& claim, const Question& question, Milliseconds max_lease);

/// If the acquisition is new, its command has not been told a fence yet, so that a server may ask for a larger one.
Request settle_request(const LockName& name, const Claim& claim, Fence fence, Settling settling);

/// `waiter`: the one that leaves the queue too; empty for none. `timed_out`: because its wait has run out.
Request cancel_request(const LockName& name, const Claim& claim, const std::string& waiter, bool timed_out);

Request renew_request(const LockName& name, const Token& token, const std::string& level, Milliseconds ttl);
/// `level`: with a star before it, all of the token, and the rest identifies the request.
Request release_request(
    const LockName& name, const Token& token, const std::string& level, const End& end, bool is_inner);
Request recall_request(const LockName& name, const Token& token, const Level& level, std::optional<Fence> fence);
Request force_request(const LockName& name, std::vector<std::string> arguments);
/// Without an end it ends the hold.
Request hold_request(const LockName& name, const Level& request, std::optional<HoldEnd> end, const Owner& by);
Request status_request(const LockName& name);
/// Asks for the newest `count` runs.
Request log_request(const LockName& name, std::size_t count);

}  // namespace rlock::lock
