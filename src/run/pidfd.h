#pragma once

#include <sys/types.h>

#include "base/fd.h"

namespace rlock::run {

/// Opens a descriptor (pidfd) that refers to a process even when its PID is used again, and is readable once the
/// process has ended. Returns an empty one, and sets errno, if that fails.
Fd open_pidfd(pid_t pid);

/// Sends a signal to the process. A failure is ignored: a process that has ended needs no signal.
void send_signal(const Fd& pidfd, int number);

}  // namespace rlock::run
