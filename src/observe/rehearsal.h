#pragma once

#include <string>
#include <vector>

#include "base/duration.h"
#include "base/loop.h"
#include "redis/server.h"

namespace rlock::observe {

/// Plays the whole life of a lock with a scratch key, which is removed: every script, waiting, listing. Returns what
/// was refused or failed, each with the server's words; nothing: all of it works. Stops at what is not a lack of
/// permission.
std::vector<std::string> rehearse(Loop& loop, redis::Server& server, const std::string& prefix, Milliseconds timeout);

}  // namespace rlock::observe
