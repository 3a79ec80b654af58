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

/// Forks the guard, into a process group of its own: a signal to the caller's group, of a job that is stopped or a
/// timeout that kills, must not reach both of us. Called before there is a connection or a thread that it could
/// inherit. Throws Error{os}.
GuardProcess fork_guard(const Command& command);

}  // namespace rlock::run
