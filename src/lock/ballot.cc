#include "lock/ballot.h"

#include <fmt/format.h>

#include "base/duration.h"

namespace rlock::lock {
namespace {

Error complaint_of(const CallResult& answer) {
  if (const auto* error = std::get_if<Error>(&answer))
    return *error;
  if (const auto* fields = std::get_if<Fields>(&answer)) {
    try {
      Fields young = *fields;
      return {ExitCode::unavailable,
              fmt::format("{}: up for {}", young.server(), format_duration(Milliseconds{young.number()}))};
    } catch (const Error& error) {
      return error;  // one server's nonsense must not end the round
    }
  }
  return {ExitCode::unavailable, "no answer yet"};
}

}  // namespace

const Fields* vote_of(const CallResult& answer) {
  const auto* fields = std::get_if<Fields>(&answer);
  return fields != nullptr && fields->outcome() != "young" ? fields : nullptr;
}

Ballot::Ballot(std::span<const CallResult> answers, const Predicate& in_favour) : servers_(answers.size()) {
  for (const CallResult& answer : answers) {
    if (const Fields* fields = vote_of(answer)) {
      in_favour(*fields) ? ++favour_ : ++against_;
    } else {
      note(answer);
    }
  }
}

void Ballot::note(const CallResult& answer) {
  if (std::holds_alternative<Fields>(answer))
    ++young_;
  const Error complaint = complaint_of(answer);
  complaints_ += (complaints_.empty() ? "" : "; ") + std::string{complaint.what()};
  if (complaint.may_pass())
    return;
  ++lasting_;
  last_lasting_ = complaint;
}

Error Ballot::failure() const {
  const bool lasting = lasting_ > servers_ - majority();  // the others are not a majority
  const ExitCode code = lasting ? last_lasting_->code() : ExitCode::unavailable;
  if (servers_ == 1)
    return {code, complaints_, lasting};
  const auto heard = young_ > 0 ? "may vote" : "answered";
  return {code,
          fmt::format(
              "{} of {} servers {}, {} are needed: {}{}",
              is_quorate() ? favour_ : favour_ + against_,
              servers_,
              is_quorate() ? "agreed" : heard,
              majority(),
              complaints_.empty() ? "the others did not" : complaints_,
              young_ > 0 ? "; a server up for less than --max-lease may have forgotten a lock and does not vote" : ""),
          lasting};
}

}  // namespace rlock::lock
