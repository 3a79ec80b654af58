#include "run/sweep.h"

#include <poll.h>
#include <signal.h>

#include <utility>

#include "base/duration.h"

namespace rlock::run {
namespace {

/// How long killed processes need to die and their orphans to become our children.
constexpr Milliseconds time_to_die{100};

Milliseconds pause_after(BootClock::duration killing) {
  if (killing < time_to_die)
    return Milliseconds{2};
  return killing < Sweep::usual ? Milliseconds{20} : Milliseconds{1000};
}

}  // namespace

bool Sweep::go_on(CommandGroup& command) noexcept {
  if (begun_ == never)
    begun_ = BootClock::now();
  saw_all_ = tree_->kill();
  command.signal(SIGKILL);
  survivors_ = {};
  if (command.is_over())
    return true;
  const auto killing = elapsed();
  next_ = BootClock::now() + (saw_all_ ? pause_after(killing) : Milliseconds{2});  // else one generation has died
  survivors_.count = 1;  // at least one; counting them is not worth the time yet
  if (killing < time_to_die)
    return false;
  survivors_ = tree_->survivors();
  return survivors_.count == 0;
}

bool Sweep::sweep_without_memory(const Tree& tree, CommandGroup& command) noexcept {
  const auto begin = BootClock::now();
  do {
    command.signal(SIGKILL);
    tree.kill_children();
    if (command.is_over())
      return true;
    ::poll(nullptr, 0, 1);
  } while (BootClock::now() < begin + longest);
  return false;
}

std::optional<Survivors> Sweep::report() {
  if (elapsed() < (saw_all_ ? usual : longest) || std::exchange(reported_, true))
    return std::nullopt;
  return survivors_;
}

/// The kernel kills the command as soon as the guard is dead.
void TakeOver::begin() const noexcept { ::kill(guard_, SIGKILL); }

}  // namespace rlock::run
