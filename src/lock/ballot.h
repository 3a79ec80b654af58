#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/error.h"
#include "lock/script_call.h"

namespace rlock::lock {

/// The answer as a vote; nullptr for a server that failed or has not been up for long enough to vote.
const Fields* vote_of(const CallResult& answer);

/// The answers of all servers to one question, counted as votes: one server decides alone, several by majority.
class Ballot {
 public:
  using Predicate = std::function<bool(const Fields&)>;

  Ballot(std::span<const CallResult> answers, const Predicate& in_favour);

  bool passed() const { return favour_ >= majority(); }
  /// Whether a majority in favour has become impossible.
  bool rejected() const { return against_ > servers_ - majority(); }
  /// Whether a majority has voted, whichever way.
  bool is_quorate() const { return favour_ + against_ >= majority(); }
  /// Why it did not pass, with the failure of each server that did not vote.
  Error failure() const;

 private:
  std::size_t majority() const { return servers_ / 2 + 1; }
  void note(const CallResult& answer);

  std::size_t servers_;
  std::size_t favour_ = 0;
  std::size_t against_ = 0;
  std::size_t young_ = 0;  // of those without a vote
  std::string complaints_;
  std::size_t lasting_ = 0;            // of the complaints, those that trying again does not mend
  std::optional<Error> last_lasting_;  // gives the exit status
};

}  // namespace rlock::lock
