#pragma once

#include <sys/types.h>

#include <string>

#include "lock/owner.h"

namespace rlock::run {

/// What to tell one who waits for a lock whose holder has started it, since neither may end before the other. Empty
/// where that is not so, as far as /proc of this machine tells.
std::string describe_deadlock(const lock::Owner& holder);

/// Whether the process is our parent, and a copy of a shell that reads what we print: the subshell of a command
/// substitution, $(...), which ends as soon as we have. False where /proc does not tell.
bool is_command_substitution(pid_t process);

}  // namespace rlock::run
