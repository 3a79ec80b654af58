#include "run/sweep.h"

#include <poll.h>

#include <utility>

namespace rlock::run {
namespace {

using std::chrono::milliseconds;

/// How long killed processes need to die and their orphans to become our children.
constexpr milliseconds moment{100};

milliseconds pause_after(BootClock::duration killing) {
  if (killing < moment)
    return milliseconds{2};
  return killing < Sweep::usual ? milliseconds{20} : milliseconds{1000};
}

}  // namespace

bool Sweep::go_on(CommandGroup& command) {
  if (!has_begun())
    begun_ = BootClock::now();
  tree_->kill();
  const bool any_left = command.reap_children();
  survivors_ = {};
  if (!any_left)
    return true;
  const auto killing = lasts();
  next_ = BootClock::now() + pause_after(killing);
  survivors_.count = 1;  // at least one; counting them is not worth the time yet
  if (killing < moment)
    return false;
  survivors_ = tree_->survivors(any_left);
  return survivors_.count == 0;
}

bool Sweep::sweep_without_memory(const Tree& tree, CommandGroup& command, BootClock::duration longest) {
  const auto begin = BootClock::now();
  do {
    tree.kill_children();
    if (!command.reap_children())
      return true;
    ::poll(nullptr, 0, 1);
  } while (BootClock::now() < begin + longest);
  return false;
}

std::optional<Survivors> Sweep::report() {
  if (lasts() < usual || std::exchange(reported_, true))
    return std::nullopt;
  return survivors_;
}

}  // namespace rlock::run
