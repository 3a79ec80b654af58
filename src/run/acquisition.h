#pragma once

#include <optional>
#include <variant>

#include "base/log.h"
#include "base/loop.h"
#include "lock/lock.h"
#include "lock/queue.h"
#include "run/plan.h"

namespace rlock::run {

/// How a run comes by its lock: it enters again the one that an enclosing run holds, or waits for its turn. The
/// connection on which it waited is closed with this.
class Acquisition {
 public:
  /// All references stay the caller's.
  Acquisition(Loop& loop, const Log& log, lock::Lock& lock, const Plan& plan)
      : loop_(&loop), log_(&log), lock_(&lock), plan_(&plan) {}

  /// Throws what lock::Queue does.
  std::variant<lock::Granted, lock::Conflict> take();

  /// The one that was granted.
  const lock::Claim& claim() const { return queue_->claim(); }

 private:
  std::optional<lock::Granted> reenter(Milliseconds usable);
  void tell(const lock::Granted& grant) const;

  Loop* loop_;
  const Log* log_;
  lock::Lock* lock_;
  const Plan* plan_;
  std::optional<lock::Queue> queue_;
};

}  // namespace rlock::run
