#pragma once

#include <string>
#include <vector>

#include "lock/inspect.h"

namespace rlock::cli {

/// KEY STATE HOLDER PID COMMAND HELD LEASE FENCE WAITING, one row per holder; everything untrusted is escaped.
std::string format_table(const std::vector<lock::LockFacts>& locks);

}  // namespace rlock::cli
