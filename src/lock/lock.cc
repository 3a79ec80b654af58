#include "lock/lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "base/error.h"
#include "base/escape.h"
#include "lock/lease.h"
#include "lock/permissions.h"
#include "lock/retry.h"
#include "lock/wording.h"
#include "redis/reply.h"

namespace rlock::lock {
namespace {

// How long to wait for stragglers.
constexpr Milliseconds split_grace{50};  // while they may still tip a split vote
constexpr Milliseconds prompt_grace{3};
constexpr Milliseconds patient_grace{250};  // a few round trips to another continent

constexpr Milliseconds prompt_repair{300};         // for a server that answers at once and has lost the lock
constexpr Milliseconds longest_background{2'000};  // for one call in the background
constexpr Milliseconds settle_pause{5};            // at most, before another fence is tried

auto outcome_is(std::string_view name) {
  return [name](const Fields& fields) { return fields.outcome() == name; };
}

bool any_answer(const Fields& /*answer*/) { return true; }

const std::string& waiter_of(const Claim& claim) { return claim.waiter ? claim.waiter->text() : claim.token.text(); }

/// Whether a taker that hears this from a majority gives up its place in the queue: it leaves, or asks without a
/// ticket.
bool ends_wait(const Answer& refusal) {
  if (const auto* superseded = std::get_if<Superseded>(&refusal))
    return !superseded->tied;
  return is_one_of<Full, Done, Exhausted>(refusal);
}

/// An enclosing run uses the fence of a re-entry already.
Settling settling_of(const Question& question) {
  if (question.how == Question::How::reenter)
    return Settling::again;
  return question.ticket.empty() ? Settling::at_once : Settling::after_wait;
}

/// Whether a server may have put us in its queue, in this round or an earlier one.
bool may_have_place(const Question& question, const std::vector<Answer>& votes) {
  return question.how == Question::How::queue &&
         (!question.ticket.empty() || std::any_of(votes.begin(), votes.end(), is_one_of<Busy, OnHold, Foreign>));
}

}  // namespace

Lock::Lock(std::span<redis::Server> servers, LockName name, Milliseconds max_lease)
    : servers_(servers),
      name_(std::move(name)),
      max_lease_(servers.size() > 1 ? max_lease : Milliseconds{0}),
      peers_(servers.size()),
      calls_(servers.size()) {}

bool Lock::was_reached() const {
  const auto reached = [](const redis::Server& s) { return s.was_reached(); };
  const auto count = static_cast<std::size_t>(std::count_if(servers_.begin(), servers_.end(), reached));
  return count >= majority_of(servers_.size());
}

bool Lock::was_asked() const {
  return std::any_of(servers_.begin(), servers_.end(), [](const redis::Server& s) { return s.was_asked(); });
}

void Lock::listen(const Level& level) {
  for (redis::Server& server : servers_) server.listen_on(name_.channel(level));
}

std::size_t Lock::count_listening() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i].listens() || calls_[i])  // it listens again when it has answered
      ++count;
  }
  return count;
}

void Lock::stop_listening() {
  for (redis::Server& server : servers_) server.listen_on({});
}

/// The servers' answers are kept for callers that need more than the result. With a `step`, the calls of stragglers go
/// on in the background.
Ballot Lock::ask(const Request& request,
                 Deadline deadline,
                 const Ballot::Predicate& in_favour,
                 Pace pace,
                 std::optional<Step> step) {
  const auto still = [&](std::span<const CallResult> answers) -> std::optional<Milliseconds> {
    const Ballot ballot{answers, in_favour, max_lease_};
    if (ballot.passed() || ballot.rejected())
      return grace(answers, ballot.passed() ? pace : Pace::prompt);
    return ballot.is_quorate() ? std::optional{split_grace} : std::nullopt;
  };
  for (auto& call : calls_) {
    if (call)
      call->abandon();
    call.reset();
  }
  const bool goes_on = step && servers_.size() > 1;
  answers_ = call_everywhere(servers_, request, deadline, still, goes_on ? &calls_ : nullptr);
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    peers_[i].lagged = std::holds_alternative<Error>(answers_[i]);
    peers_[i].step = step.value_or(peers_[i].step);
  }
  return Ballot{answers_, in_favour, max_lease_};
}

/// How long to wait at least for the servers that have not answered yet. Those that did not answer the last question
/// either are most likely dead: nobody waits for them alone, unless they may know of us and are to hear the last word.
Milliseconds Lock::grace(std::span<const CallResult> answers, Pace pace) const {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const bool may_be_dead = peers_[i].lagged && (pace == Pace::prompt || !servers_[i].was_reached());
    if (std::holds_alternative<std::monostate>(answers[i]) && !may_be_dead)
      return pace == Pace::prompt ? prompt_grace : patient_grace;
  }
  return Milliseconds{0};
}

/// True if a majority is in favour, false if none can be any more; throws if too many servers failed to answer.
bool Lock::decide(const Ballot& ballot) const {
  if (!ballot.passed() && !ballot.rejected())
    throw advise_on_permissions(ballot.failure(), name_.prefix());
  return ballot.passed();
}

Answer Lock::acquire(const Claim& claim, const Question& question, Deadline deadline) {
  if (servers_.size() > 1)
    return acquire_by_majority(claim, question, deadline);
  const auto sent = BootClock::now();
  (void)decide(ask(acquire_request(name_, claim, question, max_lease_), deadline, outcome_is("granted")));
  return read_answer(std::get<Fields>(answers_[0]), sent, claim.ttl);
}

/// The lock is held once a majority has settled the fence. Otherwise nothing may stay behind but a place in the queue.
Answer Lock::acquire_by_majority(const Claim& claim, const Question& question, Deadline deadline) {
  const auto sent = BootClock::now();
  const auto granted = outcome_is("granted");
  (void)ask(acquire_request(name_, claim, question, max_lease_), deadline, granted, pace_of(claim));
  check_distinct(answers_);
  std::vector<Answer> votes = read_votes(answers_, sent, claim.ttl);
  const bool is_granted_nowhere = all_refused(answers_);
  Ballot ballot{answers_, granted, max_lease_};
  const std::size_t majority = majority_of(servers_.size());
  std::optional<Answer> refusal = take_done(votes, claim.calendar_slot.has_value(), majority);
  if (!refusal && question.how != Question::How::reenter)
    refusal = take_failed(votes, majority);
  if (!refusal && ballot.passed()) {
    Granted held = sum_up_grants(votes, sent);
    if (held.fence.value > 0 && settle(claim, held.fence, settling_of(question), deadline)) {
      note_held(claim, held, sent + trusted(held.unconfirmed.value_or(claim.ttl)));
      return held;
    }
    ballot = Ballot{answers_, outcome_is("settled"), max_lease_};
  } else if (!refusal && (ballot.rejected() || (ballot.is_quorate() && question.how != Question::How::reenter))) {
    refusal = sum_up_refusals(votes, majority);
  }
  const bool leaves = refusal && ends_wait(*refusal) && may_have_place(question, votes);
  if (!is_granted_nowhere || leaves) {
    const Request cancel = cancel_request(name_, claim, leaves ? waiter_of(claim) : "", false);
    (void)ask(cancel, std::max(deadline, BootClock::now() + longest_withdrawal), outcome_is("cancelled"));
  }
  if (refusal)
    return *refusal;
  throw advise_on_permissions(ballot.failure(), name_.prefix());
}

/// Readers may be granted the same fence: each then chooses larger ones until they differ. A writer is always alone.
bool Lock::settle(const Claim& claim, Fence& fence, Settling settling, Deadline deadline) {
  const auto settled = outcome_is("settled");
  for (;;) {
    const Request request = settle_request(name_, claim, fence, settling);
    const bool passed = ask(request, deadline, settled, pace_of(claim), Step::first_settle).passed();
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      const Fields* fields = vote_of(answers_[i]);
      peers_[i].settled = fields != nullptr && settled(*fields);
    }
    const Fence used = largest_used_fence(answers_);
    if (passed || used == Fence{} || BootClock::now() >= deadline)
      return passed;
    fence = {used.value + 1};
    const Deadline again = BootClock::now() + jitter({}, settle_pause);  // so that both do not choose the same again
    loop().wait_out(again);
  }
}

Renewal Lock::renew(const Claim& claim, const Granted& granted, Deadline deadline) {
  const auto sent = BootClock::now();
  Renewal renewal = renew(claim.token, claim.level.text(), claim.ttl, Pace::prompt, deadline);
  if (!std::holds_alternative<Extended>(renewal))
    return renewal;
  if (servers_.size() == 1 && missing_at(answers_[0]) && !join_again(claim, granted, deadline))
    return sum_up_losses(answers_);
  if (claim.replicas)
    confirm_replicas(*claim.replicas, deadline);
  if (servers_.size() > 1) {
    note_held(claim, granted, sent + trusted(claim.ttl));
    bring_back_now(deadline);
  }
  return renewal;
}

/// After a fail-over or a restart an older record may be back, in which this level had not joined yet. Without it the
/// lock would be free as soon as the other levels have ended.
bool Lock::join_again(const Claim& claim, const Granted& granted, Deadline deadline) {
  const Question question{.how = Question::How::reenter, .waited = time_since(granted.sent)};
  return decide(ask(acquire_request(name_, claim, question, max_lease_), deadline, outcome_is("granted")));
}

/// A master that was replaced and does not know it yet may extend a lease that its successor lets run out, so an
/// extension counts only if the replicas have it. They get half of the time left, because Redis ends a WAIT up to 100
/// ms late.
void Lock::confirm_replicas(const Replicas& replicas, Deadline deadline) {
  const auto rest = time_until(deadline) / 2;
  const Milliseconds limit = std::max(Milliseconds{1}, std::min(rest, replicas.limit));
  const auto have = await_replicas(replicas.count, limit, deadline);
  if (have < replicas.count) {
    throw Error{
        ExitCode::unavailable,
        fmt::format("{} of {} replicas had the renewal within {}", have, replicas.count, format_duration(limit))};
  }
}

Renewal Lock::renew(const Token& token, Milliseconds ttl, Deadline deadline) {
  return renew(token, "", ttl, Pace::patient, deadline);
}

Renewal Lock::renew(const Token& token, const std::string& level, Milliseconds ttl, Pace pace, Deadline deadline) {
  const Request request = renew_request(name_, token, level, ttl);
  const auto step = pace == Pace::prompt ? std::optional{Step::renew} : std::nullopt;
  if (decide(ask(request, deadline, outcome_is("extended"), pace, step)))
    return Extended{};
  held_.reset();
  return sum_up_losses(answers_);
}

void Lock::note_held(const Claim& claim, const Granted& granted, Deadline until) {
  held_ = Held{.claim = claim, .grant = granted, .until = until};
}

std::vector<std::string> Lock::take_messages() {
  std::vector<std::string> all;
  for (redis::Server& server : servers_) {
    auto messages = server.take_messages();
    std::move(messages.begin(), messages.end(), std::back_inserter(all));
  }
  return all;
}

void Lock::await_messages(Deadline until) {
  std::vector<pollfd> fds;
  for (const redis::Server& server : servers_) {
    fds.push_back(server.interest());
    until = std::min(until, server.deadline());
  }
  if (loop().wait(fds, until) == Loop::Wake::event)
    return;
  for (redis::Server& server : servers_) server.hear();
}

void Lock::sleep(Deadline until) {
  credit_stragglers();  // over TLS, what has just begun is only sent when it goes on
  await_messages(until);
  credit_stragglers();
}

/// Goes on with the calls in the background. What a server answered late counts as what it has answered to its own
/// request: it shows whether the server is up to date.
void Lock::credit_stragglers() {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (!calls_[i])
      continue;
    const CallResult answer = calls_[i]->advance();
    if (std::holds_alternative<std::monostate>(answer))
      continue;
    calls_[i].reset();
    bring_back(i, peers_[i].step, answer);
  }
}

/// Brings back those servers that have just answered a renewal. One that is quick is waited for, since our process may
/// end after this; any other goes on in the background.
void Lock::bring_back_now(Deadline deadline) {
  std::vector<std::size_t> repaired;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (calls_[i])
      continue;
    bring_back(i, Step::renew, answers_[i]);
    repaired.push_back(i);
  }
  const auto is_open = [this](std::size_t server) { return calls_[server].has_value(); };
  const Deadline until = std::min(deadline, BootClock::now() + prompt_repair);
  while (std::any_of(repaired.begin(), repaired.end(), is_open) && BootClock::now() < until) sleep(until);
}

/// Gives the lock back to a server that has lost it, or this level of it (it restarted, or was cut off for long), and
/// the fence to one that answered too late to learn it. That is safe only while a majority has the lock, since nobody
/// else can hold it then. A nested run leaves it to the enclosing one to give the lock back, in its own mode.
void Lock::bring_back(std::size_t server, Step answered, const CallResult& answer) {
  const Fields* vote = vote_of(answer);
  if (vote == nullptr || !held_ || BootClock::now() >= held_->until)
    return;
  switch (answered) {
    case Step::renew: {
      const auto missing = missing_at(answer);
      peers_[server].settled = peers_[server].settled && !missing;
      if (missing)
        restore(server, *missing);
      else if (!peers_[server].settled)
        settle_at(server);
      break;
    }
    case Step::first_settle:
      peers_[server].settled = vote->outcome() == "settled";
      if (vote->outcome() == "lost")
        restore(server, Question::How::restore);
      break;
    case Step::restore:
      if (vote->outcome() == "granted")
        settle_at(server);
      break;
    case Step::settle:
      peers_[server].settled = vote->outcome() == "settled";
      break;
  }
}

void Lock::restore(std::size_t server, Question::How how) {
  if (how == Question::How::restore && held_->claim.nested)
    return;
  const Question question{.how = how, .waited = time_since(held_->grant.sent)};
  call(server, Step::restore, acquire_request(name_, held_->claim, question, max_lease_));
}

void Lock::settle_at(std::size_t server) {
  call(server, Step::settle, settle_request(name_, held_->claim, held_->grant.fence, Settling::again));
}

void Lock::call(std::size_t server, Step step, Request request) {
  always(!calls_[server], "a server has one call at a time");
  peers_[server].step = step;
  calls_[server].emplace(servers_[server], std::move(request), BootClock::now() + longest_background);
}

Release Lock::release(const Request& request, Deadline deadline) {
  stop_listening();
  const auto gave_up = [](const Fields& fields) {
    return fields.outcome() == "released" || fields.outcome() == "cooling" || fields.outcome() == "kept";
  };
  if (!decide(ask(request, deadline, gave_up, Pace::patient)))
    return {.kind = Release::Kind::lost};
  Release release;
  for (const CallResult& answer : answers_) {
    const Fields* vote = vote_of(answer);
    if (vote == nullptr || !gave_up(*vote))
      continue;
    const Release here = read_release(*vote);
    if (release.kind == Release::Kind::released)
      release.kind = here.kind;
    release.cooling = std::max(release.cooling, here.cooling);
    release.failed_attempts = std::max(release.failed_attempts, here.failed_attempts);
  }
  return release;
}

Release Lock::release(const Claim& claim, const End& end, Deadline deadline) {
  return release(release_request(name_, claim.token, claim.level.text(), end, claim.nested), deadline);
}

Release Lock::release_all(const Token& token, const Level& request, Deadline deadline) {
  return release(release_request(name_, token, "*" + request.text(), {}, false), deadline);
}

void Lock::cancel(const Claim& claim, Deadline deadline, bool timed_out) {
  stop_listening();
  const std::string waiter = claim.nested ? "" : waiter_of(claim);
  (void)decide(ask(cancel_request(name_, claim, waiter, timed_out), deadline, outcome_is("cancelled")));
}

Forced Lock::look(Deadline deadline) { return force({"evict", ""}, deadline); }

std::vector<Target> Lock::force(Force how, const Owner& by, std::span<const Fence> fences, Deadline deadline) {
  std::vector<std::string> arguments{how == Force::now ? "now" : "evict", percent_encode(describe(by))};
  for (const Fence fence : fences) arguments.push_back(fence.text());
  Forced forced = force(std::move(arguments), deadline);
  auto* targets = std::get_if<std::vector<Target>>(&forced);
  return targets != nullptr ? std::move(*targets) : std::vector<Target>{};
}

std::optional<ForeignKey> Lock::delete_foreign(Deadline deadline) {
  const Forced forced = force({"now", "", "foreign"}, deadline);
  const auto* foreign = std::get_if<ForeignKey>(&forced);
  return foreign != nullptr ? std::optional{*foreign} : std::nullopt;
}

Forced Lock::force(std::vector<std::string> arguments, Deadline deadline) {
  (void)decide(ask(force_request(name_, std::move(arguments)), deadline, any_answer, Pace::patient));
  return sum_up_targets(answers_);
}

/// The servers may disagree on what it replaces, and whether something lasts longer: any that knows of a hold is right.
NewHold Lock::hold(HoldEnd end, const Owner& by, const Level& request, Deadline deadline) {
  const auto is_held = [](const Fields& fields) { return fields.outcome() == "held" || fields.outcome() == "kept"; };
  if (!decide(ask(hold_request(name_, request, end, by), deadline, is_held, Pace::patient)))
    throw Error{ExitCode::usage, fmt::format("{}: the end of the hold has passed by the server's clock", name_.text())};
  NewHold made;
  for (const CallResult& answer : answers_) {
    const Fields* vote = vote_of(answer);
    if (vote == nullptr || !is_held(*vote))
      continue;
    NewHold here = read_new_hold(*vote, by);
    if (here.hold.until > made.hold.until)
      made.hold = std::move(here.hold);
    if (here.replaced)
      made.replaced = std::move(here.replaced);
  }
  return made;
}

std::optional<Hold> Lock::end_hold(const Owner& by, const Level& request, Deadline deadline) {
  (void)decide(ask(hold_request(name_, request, std::nullopt, by), deadline, any_answer, Pace::patient));
  for (const CallResult& answer : answers_) {
    const Fields* vote = vote_of(answer);
    if (vote != nullptr && vote->outcome() == "ended") {
      Fields fields = *vote;
      return read_hold(fields);
    }
  }
  return std::nullopt;
}

long long Lock::await_replicas(int wanted, Milliseconds limit, Deadline deadline) {
  const redis::Command wait{"WAIT", std::to_string(wanted), std::to_string(limit.count())};
  const auto replies = servers_[0].follow_up({wait}, deadline);
  redis::check_reply(servers_[0].address(), replies[0]);
  return replies[0].integer;
}

Fate Lock::fate_of(const Token& token, const Level& level, std::optional<Fence> fence, Deadline deadline) {
  (void)ask(recall_request(name_, token, level, fence), deadline, outcome_is("unknown"));
  const auto is_released = [](const CallResult& answer) {
    const Fields* vote = vote_of(answer);
    return vote != nullptr && vote->outcome() == "released";
  };
  if (std::any_of(answers_.begin(), answers_.end(), is_released))
    return GivenBack{};
  const Renewal loss = sum_up_losses(answers_);
  const auto* evicted = std::get_if<Evicted>(&loss);
  return evicted != nullptr ? Fate{*evicted} : Lost{};
}

}  // namespace rlock::lock
