#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "redis/server.h"

namespace rlock::cli {

// What a run or a script that holds locks tells the runs inside it (see lock/token.h) counts only where RLOCK_REDIS and
// RLOCK_PREFIX are the same inside.

/// The servers in the form that RLOCK_REDIS has.
std::string join_urls(const std::vector<redis::Server>& servers);

/// Whether RLOCK_REDIS names these servers, passwords aside.
bool names_servers(const std::string& urls);

/// RLOCK_HELD, if the enclosing runs use the same servers and the same prefix as this one.
std::string held_around(const Settings& settings, const std::string& urls);

}  // namespace rlock::cli
