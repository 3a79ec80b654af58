#pragma once

#include <string>
#include <vector>

#include "cli/screen.h"
#include "observe/inspect.h"

namespace rlock::cli {

/// KEY STATE HOLDER PID COMMAND HELD LEASE FENCE WAITING, one row per holder; everything untrusted is escaped. Long
/// keys, holders and commands are cut so that a row fits the screen.
std::string format_table(const std::vector<observe::LockFacts>& locks, const Screen& screen);

}  // namespace rlock::cli
