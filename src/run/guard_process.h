#pragma once

#include <sys/types.h>

#include "run/command.h"
#include "run/messages.h"

namespace rlock::run {

/// The guard's process as its keeper sees it.
struct GuardProcess {
  pid_t pid;
  Line line;
};

/// Forks the guard into a process group of its own, so that a signal to the caller's group, as job control and
/// timeout(1) send it, never hits both processes. To be called before there is a connection or a thread that the guard
/// could inherit. Throws Error{os}.
GuardProcess fork_guard(const Command& command);

}  // namespace rlock::run
