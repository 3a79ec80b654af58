#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/loop.h"
#include "base/signals.h"
#include "cli/settings.h"
#include "lock/lock.h"
#include "lock/taker.h"
#include "observe/listing.h"
#include "redis/server.h"

namespace rlock::cli {

/// The servers that the settings name, with who we are to them; several are a quorum. Nothing is connected to yet.
/// Warns about secrets that others can read.
std::vector<redis::Server> choose_servers(const Settings& settings, const Log& log, redis::ReplyLimits limits = {});

/// The one lock that the settings name, or RLOCK_KEY where that is allowed.
lock::LockName choose_lock(const Settings& settings, bool or_environment);

/// The token of the settings or of standard input, or RLOCK_TOKEN. Throws Error{usage} where there is none or it is
/// malformed.
lock::Token choose_token(const Settings& settings);

/// Who takes the lock that the settings describe, and how it wants it. Checks options against those that they exclude.
lock::Claim choose_claim(const Settings& settings, const lock::Owner& owner, Milliseconds ttl, bool kept);

lock::Patience choose_patience(const Settings& settings);

/// Throws Error{usage} for a lease or --min-hold longer than --max-lease where several servers are a quorum: one that
/// restarted would vote again before it is over.
void check_quorum_times(const Settings& settings, Milliseconds ttl);

/// The locks and patterns that the settings name; none: all.
observe::Scope choose_scope(const Settings& settings);

/// Writes a result to stdout, all of it. Throws Error{os}.
void print(std::string_view text);

}  // namespace rlock::cli
