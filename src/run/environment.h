#pragma once

#include <string>
#include <vector>

#include "lock/lock.h"
#include "run/plan.h"

namespace rlock::run {

/// What the command is told of the lock that it runs under: NAME=value strings each ended by a NUL.
std::string lock_variables(const Plan& plan, const lock::Granted& grant);

/// `additions`, as above, replace what has the same name; but what RLOCK_HELD lists already stays behind them.
std::vector<std::string> merge_environment(std::vector<std::string> environment, const std::string& additions);

}  // namespace rlock::run
