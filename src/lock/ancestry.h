#pragma once

#include <string>

#include "lock/owner.h"

namespace rlock::lock {

/// What to tell one who waits for a lock whose holder has started it, so that each may wait for the other; empty where
/// that is not so. Only processes of this machine are known, and their names and parents, which anybody may read.
std::string warn_of_own_holder(const Owner& holder);

}  // namespace rlock::lock
