#include "lock/lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/escape.h"
#include "lock/permissions.h"
#include "lock/quorum.h"
#include "lock/request.h"
#include "lock/retry.h"
#include "lock/scripts.h"
#include "lock/wording.h"
#include "redis/exchange.h"
#include "redis/refusal.h"

namespace rlock::lock {
namespace {

// How long to wait for stragglers.
constexpr Milliseconds split_grace{50};  // while they may still tip a split vote
constexpr Milliseconds prompt_grace{3};
constexpr Milliseconds patient_grace{100};  // for renewals: a server that misses them is of no use later

constexpr Milliseconds longest_withdrawal{500};  // for the cancel of a failed round, even past the deadline
constexpr Milliseconds settle_pause{5};          // at most, before another fence is tried

auto outcome_is(std::string_view name) {
  return [name](const Fields& fields) { return fields.outcome() == name; };
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

void Lock::listen(const Level& level) {
  for (redis::Server& server : servers_) server.listen_on(name_.channel(level));
}

std::size_t Lock::count_listening() const {
  const auto listens = [](const redis::Server& server) { return server.listens(); };
  return static_cast<std::size_t>(std::count_if(servers_.begin(), servers_.end(), listens));
}

void Lock::stop_listening() {
  for (redis::Server& server : servers_) server.listen_on({});
}

/// The servers' answers are kept for callers that need more than the result.
Ballot Lock::ask(Loop& loop, const Request& request, Deadline deadline, const Ballot::Predicate& in_favour, Pace pace) {
  const auto still = [&](std::span<const CallResult> answers) -> std::optional<Milliseconds> {
    const Ballot ballot{answers, in_favour};
    if (ballot.passed() || ballot.rejected())
      return grace(answers, pace);
    return ballot.is_quorate() ? std::optional{split_grace} : std::nullopt;
  };
  answers_ = call_everywhere(loop, servers_, request, deadline, still);
  for (std::size_t i = 0; i < answers_.size(); ++i) lagged_[i] = std::holds_alternative<Error>(answers_[i]);
  return Ballot{answers_, in_favour};
}

/// How long to wait at least for the servers that have not answered yet. Those that did not answer the last question
/// either are most likely dead: nobody waits for them alone.
Milliseconds Lock::grace(std::span<const CallResult> answers, Pace pace) const {
  if (pace == Pace::patient)
    return patient_grace;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (std::holds_alternative<std::monostate>(answers[i]) && !lagged_[i])
      return prompt_grace;
  }
  return Milliseconds{0};
}

/// True if a majority is in favour, false if none can be any more; throws if too many servers failed to answer.
bool Lock::decide(const Ballot& ballot) const {
  if (!ballot.passed() && !ballot.rejected())
    throw explain(ballot.failure(), name_.prefix());
  return ballot.passed();
}

Answer Lock::acquire(Loop& loop, const Claim& claim, const Question& question, Deadline deadline) {
  if (servers_.size() > 1)
    return acquire_by_majority(loop, claim, question, deadline);
  const auto sent = BootClock::now();
  (void)decide(ask(loop, acquire_request(name_, claim, question, max_lease_), deadline, outcome_is("granted")));
  return read_answer(std::get<Fields>(answers_[0]), sent, claim.ttl);
}

/// The lock is held once a majority has settled the fence. Otherwise nothing may stay behind but a place in the queue.
Answer Lock::acquire_by_majority(Loop& loop, const Claim& claim, const Question& question, Deadline deadline) {
  const auto sent = BootClock::now();
  const auto granted = outcome_is("granted");
  (void)ask(loop, acquire_request(name_, claim, question, max_lease_), deadline, granted);
  check_distinct(answers_);
  std::vector<Answer> votes = read_votes(answers_, sent, claim.ttl);
  const bool is_granted_nowhere = all_refused(answers_);
  Ballot ballot{answers_, granted};
  std::optional<Answer> refusal = take_done(votes);
  if (!refusal && ballot.passed()) {
    Granted held = sum_up_grants(votes, sent);
    const bool is_new = question.how != Question::How::reenter;  // else an enclosing run uses this fence already
    if (held.fence.value > 0 && settle(loop, claim, held.fence, is_new, deadline))
      return held;
    ballot = Ballot{answers_, outcome_is("settled")};
  } else if (!refusal && (ballot.rejected() || (ballot.is_quorate() && question.how != Question::How::reenter))) {
    refusal = sum_up_refusals(votes, servers_.size() / 2 + 1);
  }
  if (!is_granted_nowhere) {
    const auto cancelled = outcome_is("cancelled");
    (void)ask(
        loop, cancel_request(name_, claim, ""), std::max(deadline, BootClock::now() + longest_withdrawal), cancelled);
  }
  if (refusal)
    return *refusal;
  throw explain(ballot.failure(), name_.prefix());
}

/// Readers may be granted the same fence: each then chooses larger ones until they differ. A writer is always alone.
bool Lock::settle(Loop& loop, const Claim& claim, Fence& fence, bool is_new, Deadline deadline) {
  const auto settled = outcome_is("settled");
  for (;;) {
    const bool passed = ask(loop, settle_request(name_, claim, fence, is_new), deadline, settled).passed();
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      const Fields* fields = vote_of(answers_[i]);
      settled_[i] = fields != nullptr && settled(*fields);
    }
    const Fence used = largest_used_fence(answers_);
    if (passed || used == Fence{} || BootClock::now() >= deadline)
      return passed;
    fence = {used.value + 1};
    const Deadline again = BootClock::now() + jitter({}, settle_pause);  // so that both do not choose the same again
    loop.wait_out(again);
  }
}

Renewal Lock::renew(Loop& loop, const Claim& claim, const Granted& granted, Deadline deadline) {
  const Renewal renewal = renew(loop, claim.token, claim.level.text(), claim.ttl, deadline);
  if (!std::holds_alternative<Extended>(renewal))
    return renewal;
  if (claim.replicas)
    check_replicas(loop, *claim.replicas, deadline);
  if (servers_.size() > 1)
    bring_back(loop, claim, granted, deadline);
  return renewal;
}

/// A master that was replaced and does not know it yet may extend a lease that its successor lets run out, so an
/// extension counts only if the replicas have it. They get half of the time left, because Redis ends a WAIT up to 100
/// ms late.
void Lock::check_replicas(Loop& loop, const Replicas& replicas, Deadline deadline) {
  const auto rest = time_until(deadline) / 2;
  const Milliseconds limit = std::max(Milliseconds{1}, std::min(rest, replicas.limit));
  const auto have = count_replicas(loop, replicas.count, limit, deadline);
  if (have < replicas.count) {
    throw Error{
        ExitCode::unavailable,
        fmt::format("{} of {} replicas had the renewal within {}", have, replicas.count, format_duration(limit))};
  }
}

Renewal Lock::renew(Loop& loop, const Token& token, Milliseconds ttl, Deadline deadline) {
  return renew(loop, token, "", ttl, deadline);
}

Renewal Lock::renew(Loop& loop, const Token& token, const std::string& level, Milliseconds ttl, Deadline deadline) {
  const Request request = script_request(
      scripts::renew, {.keys = {name_.key()}, .values = {token.text(), std::to_string(ttl.count()), level}});
  if (!decide(ask(loop, request, deadline, outcome_is("extended"), Pace::patient)))
    return sum_up_losses(answers_);
  return Extended{};
}

/// Gives the lock back to servers that have lost it, or this level of it (they restarted, or were cut off for long),
/// and the fence to those that answered too late to learn it. That is safe only right after a majority has extended the
/// lease, since nobody else can hold the lock then. A nested run leaves it to the enclosing one to give the lock back,
/// in its own mode.
void Lock::bring_back(Loop& loop, const Claim& claim, const Granted& granted, Deadline deadline) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const auto missing = missing_at(answers_[i]);
    if (!vote_of(answers_[i]) || (!missing && settled_[i]))
      continue;
    settled_[i] = false;
    if (missing == Question::How::restore && claim.nested)
      continue;
    if (missing) {
      const Question question{.how = *missing, .ticket = {}, .waited = time_since(granted.sent)};
      if (outcome_at(loop, i, acquire_request(name_, claim, question, max_lease_), deadline) != "granted")
        continue;
    }
    settled_[i] = outcome_at(loop, i, settle_request(name_, claim, granted.fence, false), deadline) == "settled";
  }
}

/// The outcome at one server; empty if that failed, since the majority carries on without it.
std::string Lock::outcome_at(Loop& loop, std::size_t server, const Request& request, Deadline deadline) {
  const auto answers = call_everywhere(loop, servers_.subspan(server, 1), request, deadline);
  const auto* fields = std::get_if<Fields>(&answers[0]);
  return fields != nullptr ? fields->outcome() : std::string{};
}

Release Lock::release(Loop& loop, const Token& token, const std::string& level, const End& end, Deadline deadline) {
  stop_listening();
  const auto gave_up = [](const Fields& fields) {
    return fields.outcome() == "released" || fields.outcome() == "cooling" || fields.outcome() == "kept";
  };
  const std::string status = end.status ? std::to_string(*end.status) : "-";
  const Request request =
      script_request(scripts::release, {.keys = name_.keys(), .values = {token.text(), level, status, end.word}});
  if (!decide(ask(loop, request, deadline, gave_up)))
    return Release::lost;
  for (const CallResult& answer : answers_) {
    const Fields* fields = vote_of(answer);
    if (fields != nullptr && fields->outcome() == "cooling")
      return Release::cooling;
    if (fields != nullptr && fields->outcome() == "kept")
      return Release::kept;
  }
  return Release::released;
}

Release Lock::release(Loop& loop, const Claim& claim, const End& end, Deadline deadline) {
  return release(loop, claim.token, claim.level.text(), end, deadline);
}

Release Lock::release_all(Loop& loop, const Token& token, const Level& request, Deadline deadline) {
  return release(loop, token, "*" + request.text(), {}, deadline);
}

void Lock::cancel(Loop& loop, const Claim& claim, Deadline deadline) {
  stop_listening();
  const std::string& waiter = claim.waiter ? claim.waiter->text() : claim.token.text();
  (void)decide(ask(loop, cancel_request(name_, claim, waiter), deadline, outcome_is("cancelled")));
}

Forced Lock::look(Loop& loop, Deadline deadline) { return force(loop, {"evict", ""}, deadline); }

std::vector<Target> Lock::force(
    Loop& loop, Force how, const Owner& by, std::span<const Fence> fences, Deadline deadline) {
  std::vector<std::string> arguments{how == Force::now ? "now" : "evict", percent_encode(describe(by))};
  for (const Fence fence : fences) arguments.push_back(fence.text());
  Forced forced = force(loop, std::move(arguments), deadline);
  auto* targets = std::get_if<std::vector<Target>>(&forced);
  return targets != nullptr ? std::move(*targets) : std::vector<Target>{};
}

std::optional<ForeignKey> Lock::delete_foreign(Loop& loop, Deadline deadline) {
  const Forced forced = force(loop, {"now", "", "foreign"}, deadline);
  const auto* foreign = std::get_if<ForeignKey>(&forced);
  return foreign != nullptr ? std::optional{*foreign} : std::nullopt;
}

Forced Lock::force(Loop& loop, std::vector<std::string> arguments, Deadline deadline) {
  const Request request = script_request(scripts::force, {.keys = name_.keys(), .values = std::move(arguments)});
  (void)decide(ask(
      loop, request, deadline, [](const Fields&) { return true; }, Pace::patient));
  return sum_up_targets(answers_);
}

long long Lock::count_replicas(Loop& loop, int wanted, Milliseconds limit, Deadline deadline) {
  const redis::Command wait{"WAIT", std::to_string(wanted), std::to_string(limit.count())};
  const auto replies = redis::follow_up(loop, servers_[0], {wait}, deadline);
  redis::check_reply(servers_[0].address(), replies[0]);
  return replies[0].integer;
}

bool Lock::recall(Loop& loop, const Token& token, const Level& level, Deadline deadline) {
  const Request request =
      script_request(scripts::recall, {.keys = name_.keys(), .values = {token.text(), level.text()}});
  (void)ask(loop, request, deadline, outcome_is("unknown"));
  return std::any_of(answers_.begin(), answers_.end(), [](const CallResult& answer) {
    const Fields* fields = vote_of(answer);
    return fields != nullptr && fields->outcome() == "released";
  });
}

}  // namespace rlock::lock
