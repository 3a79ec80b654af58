#include "run/sweep.h"

#include <utility>

namespace rlock::run {
namespace {

using std::chrono::milliseconds;

/// The killed need this to die, and orphans to arrive.
constexpr milliseconds moment{100};

milliseconds pause_after(BootClock::duration killing) {
  if (killing < moment)
    return milliseconds{2};
  return killing < Sweep::usual ? milliseconds{20} : milliseconds{1000};
}

}  // namespace

bool Sweep::go_on(pid_t leader, std::optional<int>& leader_status) {
  if (!has_begun())
    begun_ = BootClock::now();
  tree_->kill();
  const Reaped reaped = reap(leader);
  if (reaped.leader_status)
    leader_status = reaped.leader_status;
  survivors_ = {};
  if (!reaped.any_left)
    return true;
  const auto killing = lasts();
  next_ = BootClock::now() + pause_after(killing);
  survivors_.count = 1;  // or more: not worth a count yet
  if (killing < moment)
    return false;
  survivors_ = tree_->survivors(reaped.any_left);
  return survivors_.count == 0;
}

std::optional<Survivors> Sweep::report() {
  if (lasts() < usual || std::exchange(reported_, true))
    return std::nullopt;
  return survivors_;
}

}  // namespace rlock::run
