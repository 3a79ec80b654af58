#include "run/sweep.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
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
  const auto begin = BootClock::now();
  if (begun_ == never)
    begun_ = begin;
  saw_all_ = tree_->kill();
  command.signal(SIGKILL);
  survivors_ = {};
  if (command.is_over())
    return true;
  survivors_.count = 1;  // at least one; counting them is not worth the time yet
  if (elapsed() >= time_to_die)
    survivors_ = tree_->survivors();
  if (survivors_.count == 0) {
    (void)command.is_over();  // reaps those that have died since
    return true;
  }
  rest_after(begin);
  const Milliseconds pause = saw_all_ ? pause_after(elapsed()) : Milliseconds{2};  // else one generation has died
  next_ = std::max(BootClock::now() + pause, rests_until_);
  return false;
}

bool Sweep::is_over(CommandGroup& command) noexcept {
  const auto begin = BootClock::now();
  if (begin < rests_until_ || begin >= next_)
    return false;
  const bool is_over = command.is_over();
  rest_after(begin);
  next_ = std::max(next_, rests_until_);
  return is_over;
}

/// As long as the work took, which may be a real-time process's: the killed ones then have half of the processor. There
/// is no rest after a short look, so that the end of a small tree is seen at once, nor where each round kills one
/// generation only or the tree still grows. Nor is there a long one, since the clock runs on while we are stopped, nor
/// one beyond the time at which survivors are reported.
void Sweep::rest_after(BootClock::time_point begin) {
  constexpr BootClock::duration short_look = Milliseconds{2};
  constexpr BootClock::duration longest_rest = Milliseconds{500};
  const auto now = BootClock::now();
  const auto work = now - begin;
  const bool may_rest = saw_all_ && !tree_->is_growing() && work >= short_look;
  rests_until_ = may_rest ? now + std::min(work, longest_rest) : now;
  if (const auto report = begun_ + usual; now < report)
    rests_until_ = std::min(rests_until_, report);
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
