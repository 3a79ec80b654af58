#include "run/scheduling.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace rlock::run {

void become_punctual() {
  sched_param lowest{};
  lowest.sched_priority = 1;
  if (::sched_setscheduler(0, SCHED_RR, &lowest) < 0)
    ::setpriority(PRIO_PROCESS, 0, -20);
}

void keep_pages() { ::mlockall(MCL_CURRENT | MCL_ONFAULT); }

void give_way() {
  const sched_param none{};
  const int policy = ::sched_getscheduler(0);
  if (policy == SCHED_OTHER || policy == SCHED_RR)
    ::sched_setscheduler(0, SCHED_BATCH, &none);
}

}  // namespace rlock::run
