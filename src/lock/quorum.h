#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "base/error.h"
#include "lock/answer.h"
#include "lock/request.h"
#include "lock/script_call.h"

namespace rlock::lock {

// How several servers decide as one. Hides which answers count, and how much.

/// How many of so many servers decide.
constexpr std::size_t majority_of(std::size_t servers) { return servers / 2 + 1; }

/// The answer as a vote; nullptr for a server that failed or has not been up for long enough to vote.
const Fields* vote_of(const CallResult& answer);

/// The answers of all servers to one question, counted as votes: one server decides alone, several by majority.
class Ballot {
 public:
  using Predicate = std::function<bool(const Fields&)>;

  /// By `max_lease` a failure tells when a server that is too young votes again.
  Ballot(std::span<const CallResult> answers, const Predicate& in_favour, Milliseconds max_lease = {});

  bool passed() const { return favour_ >= majority(); }
  /// Whether a majority in favour has become impossible.
  bool rejected() const { return against_ > servers_ - majority(); }
  /// Whether a majority has voted, whichever way.
  bool is_quorate() const { return favour_ + against_ >= majority(); }
  /// Why it did not pass, with the failure of each server that did not vote.
  Error failure() const;

 private:
  std::size_t majority() const { return majority_of(servers_); }
  void note(const CallResult& answer);

  std::size_t servers_;
  Milliseconds max_lease_;
  std::size_t favour_ = 0;
  std::size_t against_ = 0;
  std::size_t young_ = 0;  // of those without a vote
  std::string complaints_;
  std::size_t lasting_ = 0;            // of the complaints, those that trying again cannot help
  std::optional<Error> last_lasting_;  // gives the exit status
};

// These functions sum up the answers of a quorum's servers to one question. A failure, or the answer of a server that
// may not vote, counts for nothing.

/// The votes on an acquire, as they were read. An answer that makes no sense becomes a failure of its server.
std::vector<Answer> read_votes(std::span<CallResult> answers, BootClock::time_point sent, Milliseconds ttl);

/// Sums up an acquire that a majority has granted. The fence is the largest: each server gave smaller ones to all its
/// earlier holders. On re-entry it is the settled fence, which servers that do not know it report as 0; it is 0 if none
/// of them knows it.
Granted sum_up_grants(std::span<const Answer> votes, BootClock::time_point sent);

/// Sums up an acquire that no majority has granted: the most frequent refusal, since a single server may know of a
/// holder that the others have forgotten; nothing if there is none. Takers that ask at the same time may each be
/// refused for another's sake, so that all would leave. Such a refusal is marked as a tie: where a server has room, and
/// where no `majority` of the servers names the same holder or newer waiter.
std::optional<Answer> sum_up_refusals(std::span<const Answer> votes, std::size_t majority);

/// The answer of a server that remembers the work of --once as done. A single server is enough, since the release may
/// have reached no other. If another server knows of a later success, such answers are removed from the votes, unless a
/// `majority` gives them, which nobody could outvote, or a slot of the calendar was asked for: a success with another
/// ID does not undo that of a day.
std::optional<Answer> take_done(std::vector<Answer>& votes, bool is_slot, std::size_t majority);

/// The answer of a server that remembers failures: the lock cools after one, or there were too many attempts. A single
/// server is enough, as for take_done(), unless another knows of a success that was granted later; if a `majority` says
/// that there were too many attempts, that counts even so. A death of which a majority does not know is none: a server
/// that was away when a run ended takes it for dead, while of a true death each server knows by itself.
std::optional<Answer> take_failed(std::vector<Answer>& votes, std::size_t majority);

/// The largest fence that servers have refused to settle because another reader may have it; 0 if none has refused.
Fence largest_used_fence(std::span<const CallResult> answers);

/// Sums up a renewal that a majority has refused: a single server that knows why is enough.
Renewal sum_up_losses(std::span<const CallResult> answers);

/// Sums up the servers' answers to force.lua: every acquisition that any of them knows of, each once, ordered by
/// fence. It counts as removed once all have removed it. Another program's key matters only if no server knows of an
/// acquisition.
Forced sum_up_targets(std::span<CallResult> answers);

/// How to bring back a server that has lost our lock, or this level of it, by its answer to a renewal. Nothing for one
/// that has lost nothing, or did not vote.
std::optional<Question::How> missing_at(const CallResult& answer);

/// Whether all servers have refused an acquire, so that there is nothing to give back.
bool all_refused(std::span<const CallResult> answers);

/// The Error{usage} about two URLs of one server, which would vote twice.
Error same_server(std::string_view one, std::string_view other);

/// Throws same_server() if two answers to an acquire come from the same server.
void check_distinct(std::span<const CallResult> answers);

}  // namespace rlock::lock
