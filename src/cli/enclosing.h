#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/settings.h"
#include "lock/token.h"
#include "redis/server.h"

namespace rlock::cli {

/// The servers in the form that RLOCK_REDIS has.
std::string join_urls(const std::vector<redis::Server>& servers);

/// RLOCK_HELD, if the enclosing runs use the same servers and the same prefix as this one.
std::string held_around(const Settings& settings, const std::string& urls);

/// The token with which an enclosing run holds this lock. Malformed entries are ignored.
std::optional<lock::Token> inherited_token(std::string_view held, const std::string& name);

}  // namespace rlock::cli
