#include "lock/lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "lock/retry.h"
#include "redis/exchange.h"

namespace rlock::lock {
namespace {

constexpr Milliseconds shortest_pause{50};  // before a quorum is asked again
constexpr Milliseconds longest_pause{250};

std::string text(Milliseconds duration) { return std::to_string(duration.count()); }

Milliseconds read_ms(Fields& fields) { return Milliseconds{fields.number()}; }

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

Answer read_busy(Fields& fields) {
  Busy busy{.sleep = read_ms(fields),
            .ticket = fields.text(),
            .held = read_ms(fields),
            .lease = read_ms(fields),
            .cooling = read_ms(fields),
            .holder = {}};
  const std::string owner = fields.text();
  if (!owner.empty())
    busy.holder = Owner::decode(owner);
  return busy;
}

Answer read_foreign(Fields& fields) {
  Foreign foreign{.sleep = read_ms(fields),
                  .ticket = fields.text(),
                  .type = fields.text(),
                  .value = fields.text(),
                  .expires_in = {}};
  const Milliseconds ttl = read_ms(fields);
  if (ttl.count() >= 0)
    foreign.expires_in = ttl;
  return foreign;
}

Answer read_answer(Fields& fields, BootClock::time_point sent) {
  if (fields.outcome() == "granted") {
    return Granted{.fence = {static_cast<std::uint64_t>(fields.number())},
                   .slot = static_cast<int>(fields.number()),
                   .sent = sent};
  }
  if (fields.outcome() == "busy")
    return read_busy(fields);
  if (fields.outcome() == "foreign")
    return read_foreign(fields);
  if (fields.outcome() == "mismatch")
    return Mismatch{{static_cast<int>(fields.number())}};
  if (fields.outcome() == "upgrade")
    return Upgrade{};
  if (fields.outcome() == "lost")
    return Lost{};
  fields.unexpected();
}

auto outcome_is(std::string_view name) {
  return [name](const Fields& fields) { return fields.outcome() == name; };
}

/// Why a server's vote does not count: it failed, has not answered, or has not been up for long enough.
std::string complaint_of(const Answered& answer) {
  if (const auto* error = std::get_if<Error>(&answer))
    return error->what();
  if (const auto* fields = std::get_if<Fields>(&answer)) {
    Fields young = *fields;
    return fmt::format(
        "{}: up for {}, less than --max-lease: it does not vote", young.server(), format_duration(read_ms(young)));
  }
  return "no answer in time";
}

}  // namespace

Lock::Lock(std::span<redis::Server> servers, LockName name, Milliseconds max_lease)
    : servers_(servers), name_(std::move(name)), max_lease_(servers.size() > 1 ? max_lease : Milliseconds{0}) {}

bool Lock::was_reached() const {
  const auto reached = [](const redis::Server& s) { return s.was_reached(); };
  return static_cast<std::size_t>(std::count_if(servers_.begin(), servers_.end(), reached)) >= majority();
}

Lock::Answers Lock::ask(
    Loop& loop, const Script& script, const ScriptArguments& arguments, Deadline deadline, const Predicate& in_favour) {
  const auto enough = [&](std::span<const Answered> answers) {
    const auto favours = [&](const Answered& a) {
      return std::holds_alternative<Fields>(a) && in_favour(std::get<Fields>(a));
    };
    return static_cast<std::size_t>(std::count_if(answers.begin(), answers.end(), favours)) >= majority();
  };
  return call_everywhere(loop, servers_, script, arguments, deadline, enough);
}

bool Lock::decide(const Answers& answers, const Predicate& in_favour) const {
  std::size_t favour = 0;
  std::size_t against = 0;
  std::string complaints;
  ExitCode code = ExitCode::unavailable;
  for (const Answered& answer : answers) {
    const auto* fields = std::get_if<Fields>(&answer);
    if (fields != nullptr && fields->outcome() != "young") {
      in_favour(*fields) ? ++favour : ++against;
      continue;
    }
    if (const auto* error = std::get_if<Error>(&answer))
      code = error->code();
    complaints += (complaints.empty() ? "" : "; ") + complaint_of(answer);
  }
  if (favour >= majority())
    return true;
  if (against > servers_.size() - majority())
    return false;
  if (servers_.size() == 1)
    throw Error{code, complaints};
  throw Error{
      code,
      fmt::format(
          "{} of {} servers answered, {} are needed: {}", favour + against, servers_.size(), majority(), complaints)};
}

ScriptArguments Lock::acquire_arguments(const Claim& claim, const Place& place) const {
  return {.keys = name_.keys(),
          .values = {claim.token.text(),
                     claim.level.text(),
                     std::to_string(claim.capacity.value),
                     text(claim.ttl),
                     std::string{text(place.how)},
                     place.ticket,
                     text(claim.min_hold),
                     name_.channel(claim.level),
                     claim.owner,
                     text(max_lease_)}};
}

Answer Lock::acquire(Loop& loop, const Claim& claim, const Place& place, Deadline deadline) {
  const auto sent = BootClock::now();
  Answers answers = ask(loop, scripts::acquire, acquire_arguments(claim, place), deadline, outcome_is("granted"));
  if (servers_.size() > 1)
    return settle_or_withdraw(loop, claim, std::move(answers), sent, deadline);
  (void)decide(answers, outcome_is("granted"));  // throws what the one server failed with
  return read_answer(std::get<Fields>(answers[0]), sent);
}

/// Held once a majority has agreed on the fence; else nothing of it may stay behind.
Answer Lock::settle_or_withdraw(
    Loop& loop, const Claim& claim, Answers answers, BootClock::time_point sent, Deadline deadline) {
  Granted held{.fence = {}, .slot = 0, .sent = sent};
  std::optional<Answer> refusal;
  bool granted = false;
  std::optional<Error> failure;
  try {
    granted = decide(answers, outcome_is("granted"));
  } catch (const Error& error) {
    failure = error;
  }
  for (Answered& answer : answers) {
    auto* fields = std::get_if<Fields>(&answer);
    if (fields == nullptr || fields->outcome() == "young")
      continue;
    const Answer one = read_answer(*fields, sent);
    if (const auto* grant = std::get_if<Granted>(&one)) {
      if (grant->fence.value > held.fence.value)
        held.fence = grant->fence;
      held.slot = std::max(held.slot, grant->slot);
    } else if (!refusal) {
      refusal = one;
    }
  }
  if (granted && settle(loop, claim.token, held.fence, deadline))
    return held;
  (void)ask(loop,
            scripts::cancel,
            {.keys = name_.keys(), .values = {claim.token.text(), claim.level.text()}},
            deadline,
            outcome_is("cancelled"));
  if (failure)
    throw *failure;
  if (!refusal)
    throw Error{ExitCode::unavailable, "a majority could not agree on the fence"};
  if (auto* busy = std::get_if<Busy>(&*refusal))
    busy->sleep = jitter(shortest_pause, longest_pause);
  return *refusal;
}

bool Lock::settle(Loop& loop, const Token& token, Fence fence, Deadline deadline) {
  const auto answers = ask(loop,
                           scripts::settle,
                           {.keys = name_.keys(), .values = {token.text(), std::to_string(fence.value)}},
                           deadline,
                           outcome_is("settled"));
  return decide(answers, outcome_is("settled"));
}

Renewal Lock::renew(Loop& loop, const Claim& claim, Fence fence, Deadline deadline) {
  const auto answers = ask(loop,
                           scripts::renew,
                           {.keys = {name_.key()}, .values = {claim.token.text(), text(claim.ttl)}},
                           deadline,
                           outcome_is("extended"));
  if (!decide(answers, outcome_is("extended")))
    return Renewal::lost;
  bring_back(loop, claim, fence, answers, deadline);
  return Renewal::extended;
}

/// Servers that answer but have lost our lock (restarted, or cut off for long) take part again. Only in a round in
/// which a majority extended: then nobody else can hold it.
void Lock::bring_back(Loop& loop, const Claim& claim, Fence fence, const Answers& renewed, Deadline deadline) {
  for (std::size_t i = 0; i < renewed.size(); ++i) {
    const auto* fields = std::get_if<Fields>(&renewed[i]);
    if (fields == nullptr || fields->outcome() != "lost")
      continue;
    try {
      const Fields again = call_script(loop, servers_[i], scripts::acquire, acquire_arguments(claim, {}), deadline);
      if (again.outcome() != "granted")
        continue;
      (void)call_script(loop,
                        servers_[i],
                        scripts::settle,
                        {.keys = name_.keys(), .values = {claim.token.text(), std::to_string(fence.value)}},
                        deadline);
    } catch (const Error&) {
      // The majority carries on without it.
    }
  }
}

Renewal Lock::renew(Loop& loop, const Token& token, Milliseconds ttl, Deadline deadline) {
  const auto answers = ask(loop,
                           scripts::renew,
                           {.keys = {name_.key()}, .values = {token.text(), text(ttl)}},
                           deadline,
                           outcome_is("extended"));
  return decide(answers, outcome_is("extended")) ? Renewal::extended : Renewal::lost;
}

Release Lock::release(
    Loop& loop, const Token& token, const std::string& level, const std::string& status, Deadline deadline) {
  const auto gave_up = [](const Fields& fields) { return fields.outcome() != "lost"; };
  const auto answers =
      ask(loop, scripts::release, {.keys = name_.keys(), .values = {token.text(), level, status}}, deadline, gave_up);
  if (!decide(answers, gave_up))
    return Release::lost;
  for (const Answered& answer : answers) {
    const auto* fields = std::get_if<Fields>(&answer);
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
  const auto cancelled = outcome_is("cancelled");
  (void)decide(ask(loop,
                   scripts::cancel,
                   {.keys = name_.keys(), .values = {claim.token.text(), claim.level.text()}},
                   deadline,
                   cancelled),
               cancelled);
}

Forced Lock::force(Loop& loop, std::optional<Fence> fence, Deadline deadline) {
  const auto any = [](const Fields&) { return true; };
  auto answers = ask(loop,
                     scripts::force,
                     {.keys = name_.keys(), .values = {fence ? std::to_string(fence->value) : ""}},
                     deadline,
                     any);
  (void)decide(answers, any);
  std::vector<Owner> evicted;
  for (Answered& answer : answers) {
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

bool Lock::was_released(Loop& loop, const Token& token, Deadline deadline) {
  for (redis::Server& server : servers_) {
    const auto replies = redis::call(loop, server, {{"HGET", name_.meta_key(), "released"}}, deadline);
    check_reply(server.address(), replies[0]);
    if (replies[0].text.find(token.text() + ":") != std::string::npos)
      return true;
  }
  return false;
}

}  // namespace rlock::lock
