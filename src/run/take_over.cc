#include "run/take_over.h"

namespace rlock::run {

TakeOver::TakeOver(pid_t guard) {
  tree_.spare_elders_of(guard);
  tree_.do_not_count(guard);
}

bool TakeOver::go_on() { return sweep_.go_on(unknown_); }

}  // namespace rlock::run
