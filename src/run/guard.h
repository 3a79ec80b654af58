#pragma once

#include <sys/types.h>

#include "run/messages.h"
#include "run/plan.h"

namespace rlock::run {

/// The guard is the command's parent: a process without network access whose one duty is that the command and
/// everything it started are dead by the deadline that the keeper last gave, or as soon as the keeper is gone. It
/// relies on the keeper for nothing: the keeper may hang, be stopped or be killed.
///
///     waiting --start--> running --the command exits, with --at-end wait--> lingering
///        |                  |                                                  |
///        |                  `---- first signal ----> stopping <----------------'
///        |                                              | KILL is due or ordered, or the keeper is gone
///        |                                              v
///        |                                           killing <-- for the same reasons, from running and lingering
///        `--> gone <-- from any state, when no process is left, or those that are left may stay
///
/// Its keeper sees no more of it than this.
struct GuardProcess {
  pid_t pid;
  Line line;
};

/// Forks the guard into a process group of its own, so that a signal to the caller's group, as job control and
/// timeout(1) send it, never hits both processes. To be called before there is a connection or a thread that the guard
/// could inherit. `lock` is what it calls the lock when it tells of the keeper's death. Throws Error{os}.
GuardProcess fork_guard(const Command& command, const std::string& lock);

}  // namespace rlock::run
