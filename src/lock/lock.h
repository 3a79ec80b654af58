#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/loop.h"
#include "lock/answer.h"
#include "lock/ballot.h"
#include "lock/name.h"
#include "lock/owner.h"
#include "lock/script_call.h"
#include "lock/scripts.h"
#include "lock/token.h"
#include "redis/server.h"

namespace rlock::lock {

/// How many replicas must have a grant or a renewal before it counts, and how long they may take.
struct Replicas {
  int count = 1;
  Milliseconds limit{1000};
};

/// Who takes a lock, and how it wants it.
struct Claim {
  Token token;
  Level level;
  Capacity capacity;
  Milliseconds ttl;
  Milliseconds min_hold{0};
  std::optional<Replicas> replicas{};
  std::string owner;  // Owner::encode()
};

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

struct ForeignKey {
  std::string type, value;
};
/// What a forced release found: those evicted (nobody: it was free), or a foreign key, now deleted.
using Forced = std::variant<std::vector<Owner>, ForeignKey>;

/// One lock, on one server or on a quorum of independent ones (after Redlock, redis.io/docs/manual/patterns/
/// distributed-locks, with a fence that a majority has settled before the lock is used). One server is a quorum of one.
/// Each verb asks all servers at once, one time, and is decided by a majority; the servers stay the caller's.
///
/// Throws Error{unavailable} for whatever may pass when tried again (everything here may be repeated),
/// Error{no_permission} when Redis refuses who we are.
class Lock {
 public:
  /// `max_lease`: the longest lease anybody uses with these servers; ignored for one server.
  Lock(std::span<redis::Server> servers, LockName name, Milliseconds max_lease);

  const LockName& name() const { return name_; }
  /// Whether a majority has ever answered.
  bool was_reached() const;
  /// Whether a request has left for any: it may have been granted, though the answer was lost.
  bool was_asked() const;
  /// Only one server can keep a queue; among several, waiters ask again and again.
  bool can_queue() const { return servers_.size() == 1; }
  /// Where to listen for a wake-up; nullptr while that is not known.
  const redis::Address* node() const { return servers_[0].node(); }
  /// It did not answer: the next call looks for it anew.
  void forget_node() { servers_[0].forget_node(); }

  Answer acquire(Loop& loop, const Claim& claim, const Place& place, Deadline deadline);
  /// Throws too when fewer replicas than the claim wants have it then.
  [[nodiscard]] Renewal renew(Loop& loop, const Claim& claim, Fence fence, Deadline deadline);
  /// Extends by the token alone, as a script can; servers that missed out are not brought back.
  [[nodiscard]] Renewal renew(Loop& loop, const Token& token, Milliseconds ttl, Deadline deadline);
  /// Gives up one level; a status of nothing: not known.
  [[nodiscard]] Release release(Loop& loop, const Claim& claim, std::optional<int> status, Deadline deadline);
  /// Gives up every level of the token, and leaves word for a keeper that still believes in it.
  [[nodiscard]] Release release_all(Loop& loop, const Token& token, Deadline deadline);
  /// Leaves the queue and gives back a grant that was not used, as if it had never been asked for.
  void cancel(Loop& loop, const Claim& claim, Deadline deadline);
  /// Breaks the lock: all, or only the acquisition of that fence.
  Forced force(Loop& loop, std::optional<Fence> fence, Deadline deadline);
  /// Whether what was written last is on so many replicas, after waiting for at most `limit`: how many have it. Asked
  /// of the connection that wrote. Not for a quorum.
  long long count_replicas(Loop& loop, int wanted, Milliseconds limit, Deadline deadline);
  /// Whether release_all() was what ended this token.
  bool was_released(Loop& loop, const Token& token, Deadline deadline);

 private:
  using Answers = std::vector<Answered>;
  enum class Pace { prompt, patient };  // patient: nobody waits for the result

  Ballot ask(Loop& loop,
             const Request& request,
             Deadline deadline,
             const Ballot::Predicate& in_favour,
             Pace pace = Pace::prompt);
  Milliseconds grace(std::span<const Answered> answers, Pace pace) const;
  bool decide(const Ballot& ballot) const;
  Request acquire_request(const Claim& claim, const Place& place) const;
  Request settle_request(const Token& token, Fence fence) const;
  Request cancel_request(const Claim& claim) const;
  Answer acquire_by_majority(Loop& loop, const Claim& claim, const Place& place, Deadline deadline);
  Granted sum_up_grants(BootClock::time_point sent) const;
  Answer sum_up_refusals(BootClock::time_point sent) const;
  bool settle(Loop& loop, const Token& token, Fence fence, Deadline deadline);
  void bring_back(Loop& loop, const Claim& claim, Fence fence, Deadline deadline);
  void confirm(Loop& loop, const Replicas& replicas, Deadline deadline);
  std::string call_one(Loop& loop, std::size_t server, const Request& request, Deadline deadline);
  Release release(
      Loop& loop, const Token& token, const std::string& level, const std::string& status, Deadline deadline);

  std::span<redis::Server> servers_;
  LockName name_;
  Milliseconds max_lease_;
  Answers answers_;            // to the last question
  std::vector<bool> lagged_;   // servers that did not answer it
  std::vector<bool> settled_;  // servers that are known to have the fence
};

}  // namespace rlock::lock
