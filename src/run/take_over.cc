#include "run/take_over.h"

namespace rlock::run {

TakeOver::TakeOver(pid_t guard) {
  tree_.spare_elders_of(guard);
  tree_.do_not_count(guard);
}

bool TakeOver::go_on() {
  std::optional<int> unused;  // who led the command is the guard's knowledge
  return sweep_.go_on(-1, unused);
}

}  // namespace rlock::run
