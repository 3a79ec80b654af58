#pragma once

#include <string_view>
#include <vector>

#include "base/log.h"
#include "cli/settings.h"
#include "lock/lock.h"
#include "lock/taker.h"
#include "observe/listing.h"
#include "redis/server.h"

namespace rlock::cli {

/// The servers that the settings name, with our credentials; several are a quorum. Connects to none of them. Warns
/// about secrets that others can read. Throws Error{config} for a password file that cannot be read, Error{usage} for
/// several servers that cannot be a quorum.
std::vector<redis::Server> choose_servers(const Settings& settings, const Log& log, redis::ReplyLimits limits = {});

/// The lock that the settings name, or RLOCK_KEY where `or_environment` allows it. Throws Error{usage} where
/// there is none or its name is malformed.
lock::LockName choose_lock(const Settings& settings, bool or_environment);

/// The token of the settings or of standard input, or RLOCK_TOKEN. Throws Error{usage} where there is none or it is
/// malformed.
lock::Token choose_token(const Settings& settings);

/// The claim that the settings describe. Throws Error{usage} for options that exclude each other. `kept` means that a
/// process will renew the lease.
lock::Claim choose_claim(const Settings& settings, const lock::Owner& owner, Milliseconds ttl, bool kept);

lock::Patience choose_patience(const Settings& settings);

/// Throws Error{usage} for a lease or --min-hold longer than --max-lease where several servers are a quorum, since a
/// server that restarted would vote again before it is over.
void check_quorum_times(const Settings& settings, Milliseconds ttl);

/// The locks and patterns that the settings name; all locks where they name none.
observe::Scope choose_scope(const Settings& settings);

/// Writes the whole text to stdout. Throws Error{os}.
void print(std::string_view text);

}  // namespace rlock::cli
