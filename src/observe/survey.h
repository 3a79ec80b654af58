#pragma once

#include <span>
#include <vector>

#include "base/duration.h"
#include "base/loop.h"
#include "observe/facts.h"
#include "observe/history.h"
#include "observe/listing.h"
#include "redis/server.h"

namespace rlock::observe {

/// Gathers the facts of the locks from one server, from all masters of a cluster, or from a quorum, of which a majority
/// decides. The locks that the scope names come first, the others follow in order of name. Throws Error{unavailable}
/// rather than call a lock free because a server did not answer.
std::vector<LockFacts> survey(Loop& loop, std::span<redis::Server> servers, const Scope& scope, Milliseconds timeout);

/// The newest `count` past runs of each lock.
std::vector<History> survey_histories(
    Loop& loop, std::span<redis::Server> servers, const Scope& scope, std::size_t count, Milliseconds timeout);

/// The masters of a cluster, each as a server of its own.
std::vector<redis::Server> find_masters(Loop& loop, redis::Server& cluster, Milliseconds timeout);

}  // namespace rlock::observe
