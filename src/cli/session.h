#pragma once

#include <string_view>

#include "base/log.h"
#include "base/loop.h"
#include "base/signals.h"
#include "cli/settings.h"
#include "lock/lock.h"
#include "lock/queue.h"
#include "redis/connection.h"

namespace rlock::cli {

/// The Redis that the settings name, with who we are to it. Warns about secrets that others can read.
redis::Address choose_server(const Settings& settings, const Log& log);

/// The one lock that the settings name, or RLOCK_KEY where that is allowed.
lock::LockName choose_lock(const Settings& settings, bool or_environment);

/// The token of the settings, or RLOCK_TOKEN. Throws Error{usage} where there is none or it is malformed.
lock::Token choose_token(const Settings& settings);

/// Checks --exclusive, --shared and --slots against each other.
lock::Capacity choose_capacity(const Settings& settings);

lock::Patience choose_patience(const Settings& settings);

/// Writes a result to stdout, all of it. Throws Error{os}.
void print(std::string_view text);

}  // namespace rlock::cli
