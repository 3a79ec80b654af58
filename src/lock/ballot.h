#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/error.h"
#include "lock/script_call.h"

namespace rlock::lock {

/// Nothing for an answer that counts for nothing.
const Fields* vote_of(const Answered& answer);

/// The answers of all servers to one question, as votes: one server decides alone, several by majority. One that failed
/// or has not been up for long enough has no vote.
class Ballot {
 public:
  using Predicate = std::function<bool(const Fields&)>;

  Ballot(std::span<const Answered> answers, const Predicate& in_favour);

  bool passed() const { return favour_ >= majority(); }
  /// No majority can be in favour any more.
  bool rejected() const { return against_ > servers_ - majority(); }
  /// A majority has voted, whichever way.
  bool is_quorate() const { return favour_ + against_ >= majority(); }
  /// Why it neither passed nor was rejected: what each server without a vote has to say.
  Error failure() const;

 private:
  std::size_t majority() const { return servers_ / 2 + 1; }
  void note(const Answered& answer);

  std::size_t servers_;
  std::size_t favour_ = 0;
  std::size_t against_ = 0;
  std::size_t young_ = 0;  // of those without a vote
  std::string complaints_;
  std::size_t lasting_ = 0;            // of them those that no repetition mends
  std::optional<Error> last_lasting_;  // which says how to exit
};

}  // namespace rlock::lock
