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
#include "lock/claim.h"
#include "lock/name.h"
#include "lock/script_call.h"
#include "lock/target.h"
#include "lock/token.h"
#include "redis/exchange.h"
#include "redis/server.h"

namespace rlock::lock {

/// The answer to a renewal that a majority has carried out.
struct Extended {};
using Renewal = std::variant<Extended, Evicted, Lost>;

/// How a command ended, for the history.
struct End {
  std::optional<int> status{};
  std::string word{};  // empty: the status tells; else signal:N, evicted,BY, replaced,BY, lost, timeout or released
};

/// `cooling`: released, but taken until the minimum hold is over. `kept`: other levels of the token still hold it.
enum class Release { released, cooling, kept, lost };

struct ForeignKey {
  std::string type, value;
};

/// What a forced release found; no targets if the lock is free.
using Forced = std::variant<std::vector<Target>, ForeignKey>;

/// How to force: `evict` marks holders that have a keeper, which then gives up the lock, and removes the others; `now`
/// removes all.
enum class Force { evict, now };

/// One lock, on one server or on a quorum of independent ones (after Redlock, redis.io/docs/manual/patterns/
/// distributed-locks, with a fence that a majority has settled before the lock is used). One server is a quorum of one.
/// Each verb asks all servers at once, and a majority decides; in a quorum acquire() and renew() then ask more, to
/// settle the fence, to take back what failed, or to bring back a server. The servers stay the caller's.
///
/// Throws Error{unavailable} for a failure of the servers, Error{no_permission} if Redis refuses our user, Error{usage}
/// if two of the servers are the same one. Every verb may be repeated.
class Lock {
 public:
  /// `max_lease`: the longest lease anybody uses with these servers; ignored for one server.
  Lock(std::span<redis::Server> servers, LockName name, Milliseconds max_lease);

  const LockName& name() const { return name_; }
  /// Whether a majority has ever answered.
  bool was_reached() const;
  /// Whether a request has been sent to any: it may have been granted although the answer was lost.
  bool was_asked() const;
  /// Only one server can keep a queue; among several, waiters ask again and again.
  bool can_queue() const { return servers_.size() == 1; }

  /// Listens to the channel of that level between questions, from the end of the next question until a release or
  /// cancel.
  void listen(const Level& level);
  /// Sleeps until a message has come, a handler has run or a connection has broken, at most until the deadline.
  void sleep(Loop& loop, Deadline until) { redis::await_messages(loop, servers_, until); }
  /// The messages since the last answer, which anybody may have sent.
  std::vector<std::string> take_messages() { return redis::take_messages(servers_); }
  /// Whether the single server has confirmed that we listen.
  bool listens() const { return servers_[0].listens(); }
  /// How many servers have confirmed it.
  std::size_t count_listening() const;
  /// Why the single server has refused for good.
  const std::optional<Error>& refusal_to_listen() const { return servers_[0].refusal_to_listen(); }

  Answer acquire(Loop& loop, const Claim& claim, const Question& question, Deadline deadline);
  /// Throws also if fewer replicas than the claim wants have the renewal.
  [[nodiscard]] Renewal renew(Loop& loop, const Claim& claim, Fence fence, Deadline deadline);
  /// Extends the lease for a script, which knows no more than the token; servers that have lost it are not brought
  /// back.
  [[nodiscard]] Renewal renew(Loop& loop, const Token& token, Milliseconds ttl, Deadline deadline);
  /// Gives up one level.
  [[nodiscard]] Release release(Loop& loop, const Claim& claim, const End& end, Deadline deadline);
  /// Gives up every level of the token, and leaves word for a keeper that still believes that it holds. To repeat it
  /// after a lost answer, name the same `request`.
  [[nodiscard]] Release release_all(Loop& loop, const Token& token, const Level& request, Deadline deadline);
  /// Leaves the queue and gives back a grant that was not used, as if it had never been asked for.
  void cancel(Loop& loop, const Claim& claim, Deadline deadline);
  /// Tells who could be forced to release it. Changes nothing.
  Forced look(Loop& loop, Deadline deadline);
  /// Forces the acquisitions with these fences and no others, so that it may be repeated. Returns all that it found.
  std::vector<Target> force(Loop& loop, Force how, const Owner& by, std::span<const Fence> fences, Deadline deadline);
  /// Deletes another program's key, and returns what it was.
  std::optional<ForeignKey> delete_foreign(Loop& loop, Deadline deadline);
  /// Waits until `wanted` replicas have what this connection wrote last, for at most `limit`; returns how many have it.
  /// Not for a quorum.
  long long count_replicas(Loop& loop, int wanted, Milliseconds limit, Deadline deadline);
  /// Whether somebody else's release has ended this level, which then is no longer held. To be asked once it is known
  /// that it is not held: false also if no server can tell.
  bool recall(Loop& loop, const Token& token, const Level& level, Deadline deadline);

 private:
  using Answers = std::vector<CallResult>;
  enum class Pace { prompt, patient };  // patient: nobody waits for the result

  void stop_listening();
  Ballot ask(Loop& loop,
             const Request& request,
             Deadline deadline,
             const Ballot::Predicate& in_favour,
             Pace pace = Pace::prompt);
  Milliseconds grace(std::span<const CallResult> answers, Pace pace) const;
  bool decide(const Ballot& ballot) const;
  Answer acquire_by_majority(Loop& loop, const Claim& claim, const Question& question, Deadline deadline);
  bool settle(Loop& loop, const Claim& claim, Fence& fence, bool is_new, Deadline deadline);
  void bring_back(Loop& loop, const Claim& claim, Fence fence, Deadline deadline);
  void check_replicas(Loop& loop, const Replicas& replicas, Deadline deadline);
  std::string outcome_at(Loop& loop, std::size_t server, const Request& request, Deadline deadline);
  Renewal renew(Loop& loop, const Token& token, const std::string& level, Milliseconds ttl, Deadline deadline);
  Release release(Loop& loop, const Token& token, const std::string& level, const End& end, Deadline deadline);
  Forced force(Loop& loop, std::vector<std::string> arguments, Deadline deadline);

  std::span<redis::Server> servers_;
  LockName name_;
  Milliseconds max_lease_;
  Answers answers_;            // to the last question
  std::vector<bool> lagged_;   // the servers that did not answer it
  std::vector<bool> settled_;  // the servers that are known to have the settled fence
};

}  // namespace rlock::lock
