#include "lock/confirm.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "lock/retry.h"
#include "lock/wording.h"

namespace rlock::lock {
namespace {

Taken extend(Loop& loop, Lock& lock, const Claim& claim, Milliseconds timeout, Deadline until, const Granted& granted) {
  return persist(loop, lock, timeout, until, [&](Deadline deadline) -> Taken {
    const auto sent = BootClock::now();
    const Renewal renewal = lock.renew(loop, claim, granted, deadline);
    if (std::holds_alternative<Extended>(renewal))
      return Granted{.fence = granted.fence, .slot = granted.slot, .sent = sent};
    const auto* evicted = std::get_if<Evicted>(&renewal);
    const std::string how = evicted != nullptr ? describe(evicted->eviction) : "lost";
    return Conflict{.message = how + " right after it was granted"};
  });
}

/// A grant that too few replicas have would be lost with the master.
std::optional<Conflict> check_replicas(
    Loop& loop, Lock& lock, const Replicas& replicas, Milliseconds timeout, Deadline usable_until) {
  const auto [wanted, limit] = replicas;
  const auto have = lock.count_replicas(loop, wanted, limit, BootClock::now() + limit + timeout);
  if (have < wanted)
    return Conflict{.message = fmt::format("{} of {} replicas had it within {}", have, wanted, format_duration(limit))};
  if (BootClock::now() >= usable_until)
    return Conflict{.message = "the replicas had it too late to be used: the lease is too short for them"};
  return std::nullopt;
}

}  // namespace

Taken confirm(
    Loop& loop, Lock& lock, const Claim& claim, const LeaseTerms& terms, Milliseconds timeout, const Granted& granted) {
  Taken taken = granted;
  if (granted.unconfirmed) {
    Claim alone = claim;
    alone.replicas.reset();  // they are asked below, and have their full time then
    taken = extend(loop, lock, alone, timeout, Lease{terms, granted.sent, granted.unconfirmed}.end(), granted);
  }
  const auto* held = std::get_if<Granted>(&taken);
  if (held == nullptr || !claim.replicas)
    return taken;
  const Lease lease{terms, held->sent, held->unconfirmed};
  if (auto conflict = check_replicas(loop, lock, *claim.replicas, timeout, lease.usable_until()))
    return *std::move(conflict);
  return taken;
}

}  // namespace rlock::lock
