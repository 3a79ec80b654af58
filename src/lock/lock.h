#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "lock/answer.h"
#include "lock/name.h"
#include "lock/quorum.h"
#include "lock/request.h"
#include "lock/script_call.h"
#include "lock/token.h"
#include "redis/server.h"

namespace rlock::lock {

/// What became of a lock that its keeper does not hold any more: somebody who knows the token has released it, or its
/// holder was evicted, or no server can tell.
struct GivenBack {};
using Fate = std::variant<GivenBack, Evicted, Lost>;

/// For taking back what was asked for, even past a deadline.
constexpr Milliseconds longest_withdrawal{500};

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
  Loop& loop() const { return servers_[0].loop(); }
  /// Whether a majority has ever answered.
  bool was_reached() const;
  /// Whether a request has been sent to any: it may have been granted although the answer was lost.
  bool was_asked() const;
  /// Only a single server hands the lock to the first waiter; at several, waiters ask again and again.
  bool can_queue() const { return servers_.size() == 1; }

  /// Listens to the channel of that level between questions, from the end of the next question until a release or
  /// cancel.
  void listen(const Level& level);
  /// Sleeps until a message has come, a handler has run or a connection has broken, at most until the deadline.
  /// Meanwhile servers of a quorum that were slow, or have lost the lock, are brought up to date.
  void sleep(Deadline until);
  /// The messages since the last answer, which anybody may have sent.
  std::vector<std::string> take_messages();
  /// Whether the single server has confirmed that we listen.
  bool listens() const { return servers_[0].listens(); }
  /// How many servers have confirmed it, or will do so with their answer to what they were asked.
  std::size_t count_listening() const;
  /// Why the single server has refused for good.
  const std::optional<Error>& refusal_to_listen() const { return servers_[0].refusal_to_listen(); }

  Answer acquire(const Claim& claim, const Question& question, Deadline deadline);
  /// Throws also if fewer replicas than the claim wants have the renewal.
  [[nodiscard]] Renewal renew(const Claim& claim, const Granted& granted, Deadline deadline);
  /// Extends the lease for a script, which knows no more than the token; servers that have lost it are not brought
  /// back.
  [[nodiscard]] Renewal renew(const Token& token, Milliseconds ttl, Deadline deadline);
  /// Gives up one level.
  [[nodiscard]] Release release(const Claim& claim, const End& end, Deadline deadline);
  /// Gives up every level of the token, and leaves word for a keeper that still believes that it holds. To repeat it
  /// after a lost answer, name the same `request`.
  [[nodiscard]] Release release_all(const Token& token, const Level& request, Deadline deadline);
  /// Leaves the queue and gives back a grant that was not used, as if it had never been asked for. `timed_out`: the
  /// wait has run out, which is counted.
  void cancel(const Claim& claim, Deadline deadline, bool timed_out = false);
  /// Tells who could be forced to release it. Takes it from nobody, but records who has died, as status does.
  Forced look(Deadline deadline);
  /// Forces the acquisitions with these fences and no others, so that it may be repeated. Returns all that it found.
  std::vector<Target> force(Force how, const Owner& by, std::span<const Fence> fences, Deadline deadline);
  /// Deletes another program's key, and returns what it was.
  std::optional<ForeignKey> delete_foreign(Deadline deadline);
  /// Keeps the lock from being granted until then; whoever holds it goes on. To repeat it after a lost answer, name the
  /// same `request`. Throws Error{usage} for a time that has passed.
  NewHold hold(HoldEnd end, const Owner& by, const Level& request, Deadline deadline);
  /// Ends the hold; nothing if there was none.
  std::optional<Hold> end_hold(const Owner& by, const Level& request, Deadline deadline);
  /// Waits until `wanted` replicas have what this connection wrote last, for at most `limit`; returns how many have it.
  /// Not for a quorum.
  long long await_replicas(int wanted, Milliseconds limit, Deadline deadline);
  /// What became of a level that is known to hold no longer: somebody else has released it, or has evicted the
  /// acquisition with this fence; Lost if no server can tell.
  Fate fate_of(const Token& token, const Level& level, std::optional<Fence> fence, Deadline deadline);

 private:
  enum class Pace { prompt, patient };  // patient: what a straggler misses now it never hears, as our process ends

  /// A renewal gives the lock to those that have missed the grant, if there is one.
  static Pace pace_of(const Claim& claim) { return claim.has_keeper ? Pace::prompt : Pace::patient; }

  /// What a majority has granted or extended, and until when nobody else can hold it.
  struct Held {
    Claim claim;
    Granted grant;
    Deadline until;
  };
  enum class Step { renew, first_settle, restore, settle };

  /// What we know of a server.
  struct Peer {
    bool lagged = false;      // it did not answer the last question
    bool settled = false;     // it has the settled fence
    Step step = Step::renew;  // what our call in the background is, if it has one
  };

  void stop_listening();
  void await_messages(Deadline until);
  Ballot ask(const Request& request,
             Deadline deadline,
             const Ballot::Predicate& in_favour,
             Pace pace = Pace::prompt,
             std::optional<Step> step = {});
  Milliseconds grace(std::span<const CallResult> answers, Pace pace) const;
  bool decide(const Ballot& ballot) const;
  Answer acquire_by_majority(const Claim& claim, const Question& question, Deadline deadline);
  bool settle(const Claim& claim, Fence& fence, Settling settling, Deadline deadline);
  void note_held(const Claim& claim, const Granted& granted, Deadline until);
  void credit_stragglers();
  void bring_back_now(Deadline deadline);
  void bring_back(std::size_t server, Step answered, const CallResult& answer);
  void restore(std::size_t server, Question::How how);
  void settle_at(std::size_t server);
  void call(std::size_t server, Step step, Request request);
  bool join_again(const Claim& claim, const Granted& granted, Deadline deadline);
  void confirm_replicas(const Replicas& replicas, Deadline deadline);
  Renewal renew(const Token& token, const std::string& level, Milliseconds ttl, Pace pace, Deadline deadline);
  Release release(const Request& request, Deadline deadline);
  Forced force(std::vector<std::string> arguments, Deadline deadline);

  std::span<redis::Server> servers_;
  LockName name_;
  Milliseconds max_lease_;
  std::vector<CallResult> answers_;  // to the last question
  std::vector<Peer> peers_;
  std::optional<Held> held_;  // in a quorum
  OpenCalls calls_;           // in the background, to servers that are not up to date
};

}  // namespace rlock::lock
