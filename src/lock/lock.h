#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/loop.h"
#include "lock/name.h"
#include "lock/owner.h"
#include "lock/scripts.h"
#include "lock/token.h"
#include "redis/connection.h"

namespace rlock::lock {

/// How many may hold at once: 0 any number of readers, 1 one alone, N that many.
struct Capacity {
  int value = 1;
  friend bool operator==(Capacity, Capacity) = default;
};

constexpr Capacity shared{0};
constexpr Capacity exclusive{1};

/// Who takes a lock, and how it wants it.
struct Claim {
  Token token;
  Level level;
  Capacity capacity;
  Milliseconds ttl;
  Milliseconds min_hold{0};
  std::string owner;  // Owner::encode()
};

/// The answers of acquire.lua.
struct Granted {
  Fence fence;
  int slot = 0;
  BootClock::time_point sent;  // before the first byte of the request that was granted
};
struct Busy {
  Milliseconds sleep;             // before asking again, at most
  std::string ticket;             // our place, where we queue
  Milliseconds held, lease, cooling;
  std::optional<Owner> holder;    // none: others come first
};
struct Foreign {
  Milliseconds sleep;
  std::string ticket, type, value;
  std::optional<Milliseconds> expires_in;  // none: never
};
struct Mismatch {
  Capacity in_force;
};
struct Upgrade {};
struct Lost {};
using Answer = std::variant<Granted, Busy, Foreign, Mismatch, Upgrade, Lost>;

/// What a taker does that is not the first.
struct Place {
  enum class How {
    once,     // learn who holds it
    queue,    // join the queue
    reenter,  // take it only if the token holds it already, else Lost
  };
  How how = How::once;
  std::string ticket;  // of the place in the queue that it has already
};

enum class Renewal { extended, lost };
enum class Release { released, cooling, kept, lost };

struct ReleaseAnswer {
  Release outcome;
  Milliseconds cooling{0};
};

struct ForeignKey {
  std::string type, value;
};
/// What a forced release found: those evicted, a foreign key deleted, or nothing.
using Forced = std::variant<std::vector<Owner>, ForeignKey>;

/// One lock on one server: each verb is one script call, tried once. The connection stays the caller's.
/// Throws Error{unavailable} for whatever may pass when tried again (everything here may be repeated),
/// Error{no_permission} when Redis refuses who we are.
class Lock {
 public:
  Lock(redis::Connection& connection, LockName name) : connection_(&connection), name_(std::move(name)) {}

  const LockName& name() const { return name_; }
  redis::Connection& connection() const { return *connection_; }

  Answer acquire(Loop& loop, const Claim& claim, const Place& place, Deadline deadline);
  [[nodiscard]] Renewal renew(Loop& loop, const Token& token, Milliseconds ttl, Deadline deadline);
  /// Gives up one level; a status of nothing: not known.
  [[nodiscard]] ReleaseAnswer release(Loop& loop, const Claim& claim, std::optional<int> status, Deadline deadline);
  /// Gives up every level of the token, and leaves word for a keeper that still believes in it.
  [[nodiscard]] ReleaseAnswer release_all(Loop& loop, const Token& token, Deadline deadline);
  /// Leaves the queue.
  void cancel(Loop& loop, const Token& token, Deadline deadline);
  /// Breaks the lock: all, or only the acquisition of that fence. No evicted owner: it was free.
  Forced force(Loop& loop, std::optional<Fence> fence, Deadline deadline);
  /// Whether release_all() was what ended this token.
  bool was_released(Loop& loop, const Token& token, Deadline deadline);

 private:
  ReleaseAnswer release(Loop& loop, const Token& token, const std::string& level, const std::string& status,
                        Deadline deadline);

  redis::Connection* connection_;
  LockName name_;
};

}  // namespace rlock::lock
