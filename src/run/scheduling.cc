#include "run/scheduling.h"

#include <sched.h>

namespace rlock::run {

void give_way() {
  const sched_param none{};
  if (::sched_getscheduler(0) == SCHED_OTHER)
    ::sched_setscheduler(0, SCHED_BATCH, &none);
}

}  // namespace rlock::run
