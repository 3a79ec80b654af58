#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "lock/token.h"
#include "redis/server.h"

namespace rlock::cli {

// What a run or a script that holds locks tells the runs inside it, in RLOCK_HELD: "KEY=TOKEN" for each of its locks,
// separated by spaces, the innermost first. It counts only where RLOCK_REDIS and RLOCK_PREFIX are the same inside.

/// The servers in the form that RLOCK_REDIS has.
std::string join_urls(const std::vector<redis::Server>& servers);

/// Whether RLOCK_REDIS names these servers, passwords aside.
bool names_servers(const std::string& urls);

/// RLOCK_HELD, if the enclosing runs use the same servers and the same prefix as this one.
std::string held_around(const Settings& settings, const std::string& urls);

/// The same with one more lock, which replaces an earlier entry of the same name.
std::string held_with(const Settings& settings,
                      const std::string& urls,
                      const std::string& name,
                      const lock::Token& token);

/// The token with which an enclosing run holds this lock. Malformed entries are ignored.
std::optional<lock::Token> inherited_token(std::string_view held, const std::string& name);

}  // namespace rlock::cli
