#pragma once

#include <string>
#include <vector>

#include "cli/screen.h"
#include "observe/facts.h"
#include "observe/history.h"

namespace rlock::cli {

/// KEY MODE HOLDER PID COMMAND HELD LEASE WAITING LAST NOTE FENCE, one row per holder; everything untrusted is escaped.
std::string format_table(const std::vector<observe::LockFacts>& locks, const Screen& screen);

/// KEY STARTED WAITED HELD END HOLDER COMMAND NOTE, one row per run; times are local.
std::string format_table(const std::vector<observe::Run>& runs, const Screen& screen);

}  // namespace rlock::cli
