#include "lock/lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "lock/permissions.h"
#include "redis/exchange.h"

namespace rlock::lock {
namespace {

constexpr Milliseconds split_grace{50};  // for servers that might still tip a vote
constexpr Milliseconds prompt_grace{3};
constexpr Milliseconds patient_grace{100};  // a server that misses a renewal is no help later
constexpr Milliseconds withdrawal{500};

std::string text(Milliseconds duration) { return std::to_string(duration.count()); }

std::string_view text(Place::How how) {
  switch (how) {
    case Place::How::once:
      return "once";
    case Place::How::queue:
      return "queue";
    case Place::How::reenter:
      return "reenter";
  }
  return {};
}

auto outcome_is(std::string_view name) {
  return [name](const Fields& fields) { return fields.outcome() == name; };
}

const Fields* vote_of(const Answered& answer) {
  const auto* fields = std::get_if<Fields>(&answer);
  return fields != nullptr && fields->outcome() != "young" ? fields : nullptr;
}

}  // namespace

Lock::Lock(std::span<redis::Server> servers, LockName name, Milliseconds max_lease)
    : servers_(servers),
      name_(std::move(name)),
      max_lease_(servers.size() > 1 ? max_lease : Milliseconds{0}),
      lagged_(servers.size()),
      settled_(servers.size()) {}

bool Lock::was_reached() const {
  const auto reached = [](const redis::Server& s) { return s.was_reached(); };
  return static_cast<std::size_t>(std::count_if(servers_.begin(), servers_.end(), reached)) > servers_.size() / 2;
}

bool Lock::was_asked() const {
  return std::any_of(servers_.begin(), servers_.end(), [](const redis::Server& s) { return s.was_asked(); });
}

/// All servers' answers are kept for whoever wants more than the result.
Ballot Lock::ask(Loop& loop, const Request& request, Deadline deadline, const Ballot::Predicate& in_favour, Pace pace) {
  const auto still = [&](std::span<const Answered> answers) -> std::optional<Milliseconds> {
    const Ballot ballot{answers, in_favour};
    if (ballot.passed() || ballot.rejected())
      return grace(answers, pace);
    return ballot.is_quorate() ? std::optional{split_grace} : std::nullopt;
  };
  answers_ = call_everywhere(loop, servers_, request, deadline, still);
  for (std::size_t i = 0; i < answers_.size(); ++i) lagged_[i] = std::holds_alternative<Error>(answers_[i]);
  return Ballot{answers_, in_favour};
}

/// For those who have not answered yet. Who lagged the last time too is most likely dead: it has as long again as the
/// majority needed, and no more.
Milliseconds Lock::grace(std::span<const Answered> answers, Pace pace) const {
  if (pace == Pace::patient)
    return patient_grace;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (std::holds_alternative<std::monostate>(answers[i]) && !lagged_[i])
      return prompt_grace;
  }
  return Milliseconds{0};
}

/// True when a majority is in favour, false when none can be any more; throws when too many failed to tell.
bool Lock::decide(const Ballot& ballot) const {
  if (!ballot.passed() && !ballot.rejected())
    throw explain(ballot.failure(), name_.prefix());
  return ballot.passed();
}

Request Lock::acquire_request(const Claim& claim, const Place& place) const {
  return script_request(scripts::acquire,
                        {.keys = name_.keys(),
                         .values = {claim.token.text(),
                                    claim.level.text(),
                                    std::to_string(claim.capacity.value),
                                    text(claim.ttl),
                                    std::string{text(place.how)},
                                    place.ticket,
                                    text(claim.min_hold),
                                    name_.channel(claim.level),
                                    claim.owner,
                                    text(max_lease_)}});
}

Request Lock::settle_request(const Token& token, Fence fence) const {
  return script_request(scripts::settle, {.keys = name_.keys(), .values = {token.text(), std::to_string(fence.value)}});
}

/// By its text at once: who gives up may not be there any more to hear that a server does not know the script.
Request Lock::cancel_request(const Claim& claim) const {
  Request request =
      script_request(scripts::cancel, {.keys = name_.keys(), .values = {claim.token.text(), claim.level.text()}});
  request.command = with_source(request);
  return request;
}

Answer Lock::acquire(Loop& loop, const Claim& claim, const Place& place, Deadline deadline) {
  if (servers_.size() > 1)
    return acquire_by_majority(loop, claim, place, deadline);
  const auto sent = BootClock::now();
  (void)decide(ask(loop, acquire_request(claim, place), deadline, outcome_is("granted")));
  return read_answer(std::get<Fields>(answers_[0]), sent);
}

/// Held once a majority has agreed on the fence; else nothing of it may stay behind.
Answer Lock::acquire_by_majority(Loop& loop, const Claim& claim, const Place& place, Deadline deadline) {
  const auto sent = BootClock::now();
  Ballot ballot = ask(loop, acquire_request(claim, place), deadline, outcome_is("granted"));
  std::optional<Answer> refusal;
  if (ballot.passed()) {
    const Granted held = sum_up_grants(sent);
    if (settle(loop, claim.token, held.fence, deadline))
      return held;
    ballot = Ballot{answers_, outcome_is("settled")};
  } else if (ballot.is_quorate()) {
    refusal = sum_up_refusals(sent);
  }
  const auto cancelled = outcome_is("cancelled");
  (void)ask(loop, cancel_request(claim), std::max(deadline, BootClock::now() + withdrawal), cancelled);
  if (refusal)
    return *refusal;
  throw explain(ballot.failure(), name_.prefix());
}

/// The fence to settle is the largest of those granted: each server has given smaller ones to all holders before.
Granted Lock::sum_up_grants(BootClock::time_point sent) const {
  Granted held{.fence = {}, .slot = 0, .sent = sent};
  for (const Answered& answer : answers_) {
    const Fields* fields = vote_of(answer);
    if (fields == nullptr || fields->outcome() != "granted")
      continue;
    const auto grant = std::get<Granted>(read_answer(*fields, sent));
    held.fence.value = std::max(held.fence.value, grant.fence.value);
    held.slot = std::max(held.slot, grant.slot);
  }
  return held;
}

/// What most servers say: one alone may know of a holder that the others have forgotten.
Answer Lock::sum_up_refusals(BootClock::time_point sent) const {
  std::array<std::vector<Answer>, std::variant_size_v<Answer>> by_kind;
  for (const Answered& answer : answers_) {
    const Fields* fields = vote_of(answer);
    if (fields == nullptr || fields->outcome() == "granted")
      continue;
    Answer refusal = read_answer(*fields, sent);
    by_kind.at(refusal.index()).push_back(std::move(refusal));
  }
  const auto most = std::max_element(
      by_kind.begin(), by_kind.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return most->front();
}

bool Lock::settle(Loop& loop, const Token& token, Fence fence, Deadline deadline) {
  const auto settled = outcome_is("settled");
  const bool passed = ask(loop, settle_request(token, fence), deadline, settled).passed();
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    const Fields* fields = vote_of(answers_[i]);
    settled_[i] = fields != nullptr && settled(*fields);
  }
  return passed;
}

Renewal Lock::renew(Loop& loop, const Claim& claim, Fence fence, Deadline deadline) {
  if (renew(loop, claim.token, claim.ttl, deadline) == Renewal::lost)
    return Renewal::lost;
  if (claim.replicas)
    confirm(loop, *claim.replicas, deadline);
  if (servers_.size() > 1)
    bring_back(loop, claim, fence, deadline);
  return Renewal::extended;
}

/// A master that was replaced, and does not know it yet, extends a lease that its successor lets run out: without its
/// replicas the extension is worth nothing. They have less time than the answer has.
void Lock::confirm(Loop& loop, const Replicas& replicas, Deadline deadline) {
  const auto rest = std::chrono::duration_cast<Milliseconds>(deadline - BootClock::now()) * 3 / 4;
  const Milliseconds limit = std::max(Milliseconds{1}, std::min(rest, replicas.limit));
  const auto have = count_replicas(loop, replicas.count, limit, deadline);
  if (have < replicas.count) {
    throw Error{
        ExitCode::unavailable,
        fmt::format("{} of {} replicas had the renewal within {}", have, replicas.count, format_duration(limit))};
  }
}

Renewal Lock::renew(Loop& loop, const Token& token, Milliseconds ttl, Deadline deadline) {
  const Request request = script_request(scripts::renew, {.keys = {name_.key()}, .values = {token.text(), text(ttl)}});
  const bool extended = decide(ask(loop, request, deadline, outcome_is("extended"), Pace::patient));
  return extended ? Renewal::extended : Renewal::lost;
}

/// Servers that answer but have lost our lock (restarted, or cut off for long) take part again, and those that answered
/// too late to learn the fence learn it. Only in a round in which a majority extended: then nobody else can hold it.
void Lock::bring_back(Loop& loop, const Claim& claim, Fence fence, Deadline deadline) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const Fields* fields = vote_of(answers_[i]);
    if (fields == nullptr)
      continue;
    const bool lost = fields->outcome() == "lost";
    if (!lost && settled_[i])
      continue;
    try {
      settled_[i] = false;
      if (lost && call_one(loop, i, acquire_request(claim, {}), deadline) != "granted")
        continue;
      settled_[i] = call_one(loop, i, settle_request(claim.token, fence), deadline) == "settled";
    } catch (const Error&) {
      // The majority carries on without it.
    }
  }
}

std::string Lock::call_one(Loop& loop, std::size_t server, const Request& request, Deadline deadline) {
  return call_script(loop, servers_[server], request, deadline).outcome();
}

Release Lock::release(
    Loop& loop, const Token& token, const std::string& level, const std::string& status, Deadline deadline) {
  const auto gave_up = [](const Fields& fields) {
    return fields.outcome() == "released" || fields.outcome() == "cooling" || fields.outcome() == "kept";
  };
  const Request request =
      script_request(scripts::release, {.keys = name_.keys(), .values = {token.text(), level, status}});
  if (!decide(ask(loop, request, deadline, gave_up)))
    return Release::lost;
  for (const Answered& answer : answers_) {
    const Fields* fields = vote_of(answer);
    if (fields != nullptr && fields->outcome() == "cooling")
      return Release::cooling;
    if (fields != nullptr && fields->outcome() == "kept")
      return Release::kept;
  }
  return Release::released;
}

Release Lock::release(Loop& loop, const Claim& claim, std::optional<int> status, Deadline deadline) {
  return release(loop, claim.token, claim.level.text(), status ? std::to_string(*status) : "-", deadline);
}

Release Lock::release_all(Loop& loop, const Token& token, Deadline deadline) {
  return release(loop, token, "*", "-", deadline);
}

void Lock::cancel(Loop& loop, const Claim& claim, Deadline deadline) {
  (void)decide(ask(loop, cancel_request(claim), deadline, outcome_is("cancelled")));
}

Forced Lock::force(Loop& loop, std::optional<Fence> fence, Deadline deadline) {
  const Request request =
      script_request(scripts::force, {.keys = name_.keys(), .values = {fence ? std::to_string(fence->value) : ""}});
  (void)decide(ask(
      loop, request, deadline, [](const Fields&) { return true; }, Pace::patient));
  std::vector<Owner> evicted;
  for (Answered& answer : answers_) {
    auto* fields = std::get_if<Fields>(&answer);
    if (fields == nullptr)
      continue;
    if (fields->outcome() == "foreign")
      return ForeignKey{.type = fields->text(), .value = fields->text()};
    while (!fields->at_end()) {
      const Owner owner = Owner::decode(fields->text());
      if (std::find(evicted.begin(), evicted.end(), owner) == evicted.end())
        evicted.push_back(owner);
    }
  }
  return evicted;
}

long long Lock::count_replicas(Loop& loop, int wanted, Milliseconds limit, Deadline deadline) {
  const redis::Command wait{"WAIT", std::to_string(wanted), text(limit)};
  const auto replies = redis::follow_up(loop, servers_[0], {wait}, deadline);
  check_reply(servers_[0].address(), replies[0]);
  return replies[0].integer;
}

bool Lock::was_released(Loop& loop, const Token& token, Deadline deadline) {
  const auto names_it = [&token](const Fields& fields) {
    return fields.outcome().find(token.text() + ":") != std::string::npos;
  };
  (void)ask(loop, {.command = {"HMGET", name_.meta_key(), "released"}}, deadline, names_it);
  return std::any_of(answers_.begin(), answers_.end(), [&](const Answered& answer) {
    const Fields* fields = vote_of(answer);
    return fields != nullptr && names_it(*fields);
  });
}

}  // namespace rlock::lock
