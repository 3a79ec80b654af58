#pragma once

#include <string>
#include <vector>

#include "base/duration.h"
#include "base/loop.h"
#include "redis/server.h"

namespace rlock::observe {

/// Goes through the whole life of a lock on a scratch key: runs every script, waits and lists. The key is removed at
/// the end. Returns what was refused or failed, in the server's words; an empty list means that everything works. Stops
/// at the first failure that is not a lack of permission.
std::vector<std::string> rehearse(Loop& loop, redis::Server& server, const std::string& prefix, Milliseconds timeout);

}  // namespace rlock::observe
