#pragma once

#include <string>

#include "run/messages.h"
#include "run/plan.h"

namespace rlock::run {

/// The message for a guard's news that the command did not start.
std::string describe_failure(const News& news, const Plan& plan);

/// "3 processes (pid 812, 813, 815)".
std::string describe(const Survivors& survivors);

}  // namespace rlock::run
