#include "run/scheduling.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rlock::run {

Scheduling::Scheduling() : slack_(::prctl(PR_GET_TIMERSLACK)) {
  ::syscall(SYS_sched_getattr, 0, &attributes_, sizeof attributes_, 0U);
}

void Scheduling::restore() const {
  ::syscall(SYS_sched_setattr, 0, &attributes_, 0U);
  ::prctl(PR_SET_TIMERSLACK, slack_);  // a process with a real-time priority has none, and neither do its children
}

void become_punctual() {
  sched_param highest{};
  highest.sched_priority = 99;
  if (::sched_setscheduler(0, SCHED_RR, &highest) < 0)
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
