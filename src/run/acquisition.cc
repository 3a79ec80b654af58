#include "run/acquisition.h"

#include <fmt/format.h>

namespace rlock::run {

std::variant<lock::Granted, lock::Conflict> Acquisition::take() {
  const Milliseconds usable = plan_->lease.usable() - plan_->lease.margin - plan_->lease.kill_after;
  if (const auto again = reenter(usable)) {
    tell(*again);
    return *again;
  }
  queue_.emplace(*loop_, *log_, *lock_, plan_->claim, plan_->patience);
  const auto taken = queue_->take(usable);
  if (const auto* grant = std::get_if<lock::Granted>(&taken))
    tell(*grant);
  return taken;
}

/// One level more of a lock that an enclosing run holds. Its token is used only while it holds: were we to take the
/// lock anew with it, the enclosing run would go on renewing what it had lost.
std::optional<lock::Granted> Acquisition::reenter(Milliseconds usable) {
  if (!plan_->inherited)
    return std::nullopt;
  lock::Claim claim = plan_->claim;
  claim.token = *plan_->inherited;
  queue_.emplace(*loop_, *log_, *lock_, claim, plan_->patience);
  return queue_->reenter(usable);
}

void Acquisition::tell(const lock::Granted& grant) const {
  const std::string& name = plan_->name.text();
  log_->step(fmt::format("holding {}, fence {}", name, grant.fence.value));
  const auto took = std::chrono::duration_cast<Milliseconds>(BootClock::now() - grant.sent);
  if (took <= plan_->lease.ttl / 10 || grant.unconfirmed)
    return;
  log_->notice(fmt::format("{}: the answer took {}; a lease of {} is short for this network",
                           name,
                           format_duration(took),
                           format_duration(plan_->lease.ttl)));
}

}  // namespace rlock::run
