#pragma once

#include <string_view>
#include <vector>

#include "cli/options.h"
#include "lock/name.h"
#include "lock/owner.h"
#include "lock/request.h"
#include "lock/taker.h"
#include "lock/token.h"
#include "observe/listing.h"
#include "redis/server.h"

namespace rlock::cli {

/// The lock that the settings name. Both throw Error{usage} where there is none or its name is malformed.
lock::LockName choose_lock(const Settings& settings);
/// The same, or else the lock of RLOCK_KEY, which is set for those who hold one.
lock::LockName choose_held_lock(const Settings& settings);

/// The token of the settings or of standard input, or else RLOCK_TOKEN; where that belongs to another lock, RLOCK_KEY,
/// this one's in RLOCK_HELD. Throws Error{usage} where there is none or it is malformed; `hint` then ends the message.
lock::Token choose_token(const Settings& settings,
                         const lock::LockName& name,
                         const std::vector<redis::Server>& servers,
                         std::string_view hint = {});

/// The claim that the settings describe. Throws Error{usage} for options that exclude each other. `has_keeper`: a
/// process will renew the lease.
lock::Claim choose_claim(const Settings& settings, const lock::Owner& owner, bool has_keeper);

/// How long the settings allow to wait for the lock, and for one answer.
lock::Patience choose_patience(const Settings& settings);

/// Throws Error{usage} for a lease or --min-hold longer than --max-lease where several servers are a quorum, since a
/// server that restarted would vote again before it is over.
void check_quorum_times(const Settings& settings);

/// Whether the word, one of the settings' keys, is a pattern. What --key names is one lock, whatever it looks like.
bool is_pattern(const Settings& settings, std::string_view word);

/// The locks and patterns that the settings name; all locks where they name none.
observe::Scope choose_scope(const Settings& settings);

}  // namespace rlock::cli
