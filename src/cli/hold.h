#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "lock/answer.h"
#include "lock/lock.h"

namespace rlock::cli {

/// Puts the lock on hold and prints one line: until when, by whom, and which hold that replaces.
void put_on_hold(const Settings& settings, lock::Lock& lock, const lock::HoldEnd& end);

}  // namespace rlock::cli
