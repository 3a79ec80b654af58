#pragma once

#include <vector>

#include "base/log.h"
#include "base/loop.h"
#include "cli/options.h"
#include "redis/server.h"

namespace rlock::cli {

/// The servers that the settings name, with our credentials; several are a quorum. Connects to none of them. Warns
/// about secrets that others can read. The loop, in which all of them are waited for, must outlive them. Throws
/// Error{config} for a password file that cannot be read, Error{usage} for several servers that cannot be a quorum.
std::vector<redis::Server> choose_servers(Loop& loop,
                                          const Settings& settings,
                                          const Log& log,
                                          redis::ReplyLimits limits = {});

/// Warns if the only server is a replica, where what is seen may be behind what its master knows. Sentinel and Cluster
/// lead to masters, and with several servers a majority decides. To be called when the server has answered already.
void warn_of_replica(std::vector<redis::Server>& servers, const Settings& settings, const Log& log);

}  // namespace rlock::cli
