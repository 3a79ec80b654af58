#pragma once

#include "base/exit_code.h"
#include "base/log.h"
#include "cli/settings.h"
#include "lock/lock.h"

namespace rlock::cli {

/// `release --force`: makes the holders give the lock up and waits until they have; with --now it takes the lock away
/// at once.
ExitCode force_release(const Settings& settings, lock::Lock& lock, const Log& log);

}  // namespace rlock::cli
