#pragma once

#include <string>

#include "cli/options.h"
#include "lock/lock.h"

namespace rlock::cli {

/// Puts the lock on hold for the reason `note`, and prints one line: until when, by whom, and which hold that replaces.
void put_on_hold(const Settings& settings, const std::string& note, lock::Lock& lock);

}  // namespace rlock::cli
