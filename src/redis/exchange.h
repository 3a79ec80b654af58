#pragma once

#include <vector>

#include "base/loop.h"
#include "redis/connection.h"

namespace rlock::redis {

/// Sends the commands and waits for their replies, while `loop`'s handlers run. Throws as Connection does; what a
/// handler throws passes through and abandons the exchange.
std::vector<Reply> call(Loop& loop, Connection& connection, const std::vector<Command>& commands, Deadline deadline);

}  // namespace rlock::redis
