#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lock/lock.h"
#include "run/plan.h"

namespace rlock::run {

/// The variables that tell the command about its lock: NAME=value strings, each ended by a NUL.
std::string lock_variables(const Plan& plan, const lock::Granted& grant);

/// Adds `additions`, in the form above, replacing variables of the same name. RLOCK_HELD alone is not replaced: the
/// locks that it already lists are kept after the new one.
std::vector<std::string> merge_environment(std::vector<std::string> environment, std::string_view additions);

}  // namespace rlock::run
