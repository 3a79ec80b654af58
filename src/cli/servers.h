#pragma once

#include <vector>

#include "base/log.h"
#include "cli/settings.h"
#include "redis/server.h"

namespace rlock::cli {

/// The servers that the settings name, with our credentials; several are a quorum. Connects to none of them. Warns
/// about secrets that others can read. Throws Error{config} for a password file that cannot be read, Error{usage} for
/// several servers that cannot be a quorum.
std::vector<redis::Server> choose_servers(const Settings& settings, const Log& log, redis::ReplyLimits limits = {});

}  // namespace rlock::cli
