#include "run/pidfd.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace rlock::run {

Fd open_pidfd(pid_t pid) {
  return Fd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};  // close-on-exec, always
}

void send_signal(const Fd& pidfd, int number) { ::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0); }

}  // namespace rlock::run
