#include "lock/quorum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace rlock::lock {
namespace {

/// A server that is too young only says for how long it has been up.
Error complaint_of(const CallResult& answer, Milliseconds max_lease) {
  if (const auto* error = std::get_if<Error>(&answer))
    return *error;
  if (const auto* fields = std::get_if<Fields>(&answer)) {
    try {
      Fields young = *fields;
      const Milliseconds up{young.number()};
      const std::string again =
          up < max_lease ? fmt::format(", votes again in {}", format_duration(max_lease - up)) : "";
      return {ExitCode::unavailable, fmt::format("{}: up for {}{}", young.server(), format_duration(up), again)};
    } catch (const Error& error) {
      return error;  // one server's nonsense must not end the round
    }
  }
  return {ExitCode::unavailable, "no answer yet"};
}

/// What `read` makes of an answer. Nothing for one that makes no sense: a single server must not spoil the round.
template <typename Read>
auto try_to_read(Fields fields, Read read) -> std::optional<decltype(read(fields))> {
  try {
    return read(fields);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// How often the owner that is named most is named.
template <typename Refusal, typename Name>
std::size_t most_named(std::span<const Answer> votes, Name name) {
  std::map<std::string, std::size_t> counts;
  std::size_t most = 0;
  for (const Answer& vote : votes) {
    if (const auto* refusal = std::get_if<Refusal>(&vote))
      most = std::max(most, ++counts[name(*refusal).encode()]);
  }
  return most;
}

template <typename Kind>
const Answer* find_kind(std::span<const Answer> votes) {
  const auto found = std::find_if(votes.begin(), votes.end(), is_one_of<Kind>);
  return found == votes.end() ? nullptr : &*found;
}

template <typename Kind>
bool any_is(std::span<const Answer> votes) {
  return find_kind<Kind>(votes) != nullptr;
}

template <typename Kind>
bool is_said_by(std::size_t majority, std::span<const Answer> votes) {
  return static_cast<std::size_t>(std::count_if(votes.begin(), votes.end(), is_one_of<Kind>)) >= majority;
}

void mark_tie(Answer& refusal, std::span<const Answer> votes, std::size_t majority) {
  if (auto* busy = std::get_if<Busy>(&refusal)) {
    const auto holder = [](const Busy& other) { return other.holder; };
    busy->tied = any_is<Granted>(votes) && most_named<Busy>(votes, holder) < majority;
  } else if (auto* held_back = std::get_if<OnHold>(&refusal)) {
    held_back->tied = any_is<Granted>(votes) && !is_said_by<OnHold>(majority, votes);
  } else if (auto* full = std::get_if<Full>(&refusal)) {
    full->tied = any_is<Granted>(votes) || any_is<Busy>(votes);
  } else if (auto* superseded = std::get_if<Superseded>(&refusal)) {
    const auto newer = [](const Superseded& other) { return other.by; };
    superseded->tied = most_named<Superseded>(votes, newer) < majority;
  }
}

std::optional<Milliseconds> last_success(const Answer& vote) {
  if (const auto* granted = std::get_if<Granted>(&vote))
    return granted->last_success;
  if (const auto* held_back = std::get_if<OnHold>(&vote))
    return held_back->last_success;
  const auto* busy = std::get_if<Busy>(&vote);
  return busy != nullptr ? busy->last_success : std::nullopt;
}

/// Whether the last failure of which it tells is one that nobody has reported.
bool tells_of_death(const Answer& vote) {
  if (const auto* exhausted = std::get_if<Exhausted>(&vote))
    return exhausted->failures.end == "died";
  const auto* busy = std::get_if<Busy>(&vote);
  return busy != nullptr && busy->failures && busy->failures->end == "died";
}

void add_target(std::map<Fence, Target>& targets, const Target& target) {
  const auto [known, is_new] = targets.emplace(target.fence, target);
  if (!is_new && known->second.state == Target::State::removed)
    known->second = target;
}

}  // namespace

const Fields* vote_of(const CallResult& answer) {
  const auto* fields = std::get_if<Fields>(&answer);
  return fields != nullptr && fields->outcome() != "young" ? fields : nullptr;
}

Ballot::Ballot(std::span<const CallResult> answers, const Predicate& in_favour, Milliseconds max_lease)
    : servers_(answers.size()), max_lease_(max_lease) {
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
  const Error complaint = complaint_of(answer, max_lease_);
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

std::vector<Answer> read_votes(std::span<CallResult> answers, BootClock::time_point sent, Milliseconds ttl) {
  std::vector<Answer> votes;
  for (CallResult& answer : answers) {
    const Fields* fields = vote_of(answer);
    if (fields == nullptr)
      continue;
    try {
      votes.push_back(read_answer(*fields, sent, ttl));
    } catch (const Error& error) {
      answer = Error{error};
    }
  }
  return votes;
}

Granted sum_up_grants(std::span<const Answer> votes, BootClock::time_point sent) {
  Granted held{.fence = {}, .slot = 0, .sent = sent};
  for (const Answer& vote : votes) {
    const auto* grant = std::get_if<Granted>(&vote);
    if (grant == nullptr)
      continue;
    held.fence = std::max(held.fence, grant->fence);
    if (grant->unconfirmed)
      held.unconfirmed = held.unconfirmed ? std::min(*held.unconfirmed, *grant->unconfirmed) : grant->unconfirmed;
  }
  return held;
}

std::optional<Answer> sum_up_refusals(std::span<const Answer> votes, std::size_t majority) {
  std::array<std::vector<Answer>, std::variant_size_v<Answer>> by_kind;
  for (const Answer& vote : votes) {
    if (!std::holds_alternative<Granted>(vote))
      by_kind.at(vote.index()).push_back(vote);
  }
  const auto most = std::max_element(
      by_kind.begin(), by_kind.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (most->empty())
    return std::nullopt;
  // With a place at less than a majority the queue counts as full: at the others somebody else may have that place.
  const Answer* full = find_kind<Full>(votes);
  Answer refusal = full != nullptr && most->size() < majority ? *full : most->front();
  mark_tie(refusal, votes, majority);
  return refusal;
}

std::optional<Answer> take_done(std::vector<Answer>& votes, bool is_slot, std::size_t majority) {
  const Done* newest = nullptr;
  for (const Answer& vote : votes) {
    const auto* done = std::get_if<Done>(&vote);
    if (done != nullptr && (newest == nullptr || done->granted_ago < newest->granted_ago))
      newest = done;
  }
  if (newest == nullptr)
    return std::nullopt;
  const auto knows_later = [&](const Answer& vote) {
    const auto success = last_success(vote);
    return success && *success < newest->granted_ago;
  };
  if (is_slot || is_said_by<Done>(majority, votes) || std::none_of(votes.begin(), votes.end(), knows_later))
    return *newest;
  std::erase_if(votes, is_one_of<Done>);
  return std::nullopt;
}

std::optional<Answer> take_failed(std::vector<Answer>& votes, std::size_t majority) {
  const auto failed_ago = [](const Answer& vote) -> std::optional<Milliseconds> {
    if (const auto* exhausted = std::get_if<Exhausted>(&vote))
      return exhausted->granted_ago;
    const auto* busy = std::get_if<Busy>(&vote);
    return busy != nullptr && busy->failures ? std::optional{busy->held} : std::nullopt;
  };
  std::optional<Milliseconds> success;
  for (const Answer& vote : votes) {
    if (const auto ago = last_success(vote); ago && (!success || *ago < *success))
      success = ago;
  }
  const bool is_exhausted = is_said_by<Exhausted>(majority, votes);
  const auto deaths = static_cast<std::size_t>(std::count_if(votes.begin(), votes.end(), tells_of_death));
  const auto is_overruled = [&](const Answer& vote) {
    if (tells_of_death(vote) && votes.size() - deaths >= majority)
      return true;
    const bool is_certain = is_exhausted && std::holds_alternative<Exhausted>(vote);
    return !is_certain && success && *success < *failed_ago(vote);
  };
  const auto found = std::find_if(
      votes.begin(), votes.end(), [&](const Answer& vote) { return failed_ago(vote) && !is_overruled(vote); });
  if (found != votes.end())
    return *found;
  std::erase_if(votes,
                [&](const Answer& vote) { return std::holds_alternative<Exhausted>(vote) && is_overruled(vote); });
  return std::nullopt;
}

Fence largest_used_fence(std::span<const CallResult> answers) {
  Fence largest;
  for (const CallResult& answer : answers) {
    const Fields* vote = vote_of(answer);
    if (vote == nullptr || vote->outcome() != "used")
      continue;
    const auto used = try_to_read(*vote, [](Fields& fields) { return read_fence(fields.text()); });
    largest = std::max(largest, used.value_or(std::nullopt).value_or(Fence{}));
  }
  return largest;
}

Renewal sum_up_losses(std::span<const CallResult> answers) {
  for (const CallResult& answer : answers) {
    const Fields* vote = vote_of(answer);
    if (vote == nullptr || vote->outcome() != "evicted")
      continue;
    if (auto eviction = try_to_read(*vote, read_eviction))
      return Evicted{std::move(*eviction)};
  }
  return Lost{};
}

Forced sum_up_targets(std::span<CallResult> answers) {
  std::map<Fence, Target> targets;
  std::optional<ForeignKey> foreign;
  for (CallResult& answer : answers) {
    auto* fields = std::get_if<Fields>(&answer);
    if (fields == nullptr)
      continue;
    if (fields->outcome() == "foreign") {
      foreign = ForeignKey{.type = fields->text(), .value = fields->text()};
    } else {
      while (!fields->at_end()) add_target(targets, read_target(fields->text()));
    }
  }
  if (foreign && targets.empty())
    return *foreign;
  std::vector<Target> in_order;
  for (auto& [fence, target] : targets) in_order.push_back(std::move(target));
  return in_order;
}

std::optional<Question::How> missing_at(const CallResult& answer) {
  const Fields* vote = vote_of(answer);
  if (vote == nullptr || vote->outcome() == "evicted")
    return std::nullopt;
  if (vote->outcome() == "lost")
    return Question::How::restore;
  const auto known = try_to_read(*vote, [](Fields& fields) {
    (void)fields.number();  // the lease
    return fields.number();
  });
  return known == 0 ? std::optional{Question::How::reenter} : std::nullopt;
}

bool all_refused(std::span<const CallResult> answers) {
  return std::all_of(answers.begin(), answers.end(), [](const CallResult& answer) {
    const auto* fields = std::get_if<Fields>(&answer);
    return fields != nullptr && fields->outcome() != "granted";
  });
}

Error same_server(std::string_view one, std::string_view other) {
  return {ExitCode::usage,
          fmt::format("{} and {} are the same server; each --redis must name a different one, since a majority of them "
                      "decides",
                      one,
                      other)};
}

void check_distinct(std::span<const CallResult> answers) {
  std::vector<const Fields*> known;
  for (const CallResult& answer : answers) {
    const auto* fields = std::get_if<Fields>(&answer);
    if (fields == nullptr || fields->last().empty())
      continue;
    const auto twin =
        std::find_if(known.begin(), known.end(), [&](const Fields* other) { return other->last() == fields->last(); });
    if (twin != known.end())
      throw same_server((*twin)->server(), fields->server());
    known.push_back(fields);
  }
}

}  // namespace rlock::lock
