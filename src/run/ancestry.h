#pragma once

#include <string>

#include "lock/owner.h"

namespace rlock::run {

/// What to tell one who waits for a lock whose holder has started it, since neither may end before the other. Empty
/// where that is not so, as far as /proc of this machine tells.
std::string describe_deadlock(const lock::Owner& holder);

}  // namespace rlock::run
