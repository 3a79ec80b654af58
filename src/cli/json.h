#pragma once

#include <string>
#include <vector>

#include "lock/inspect.h"

namespace rlock::cli {

/// One JSON array on one line with every fact, ended by a newline.
std::string format_json(const std::vector<lock::LockFacts>& locks);

/// "free", "held", "cooling" or "foreign".
std::string_view state_name(lock::State state);

}  // namespace rlock::cli
