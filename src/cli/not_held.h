#pragma once

#include "base/exit_code.h"
#include "base/log.h"
#include "base/loop.h"
#include "lock/lock.h"

namespace rlock::cli {

/// Says that the token does not hold the lock any more, and what is there instead: free, released, or held by somebody
/// else. It asks the servers for that until `give_up`.
ExitCode say_not_held(
    Loop& loop, lock::Lock& lock, const lock::Token& token, Milliseconds timeout, Deadline give_up, const Log& log);

}  // namespace rlock::cli
