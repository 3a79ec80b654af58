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

/// What is known of the locks wherever it is known: at one server, at all masters of a cluster, or at a quorum, of
/// which a majority decides. Those named come first, the others by name. Throws Error{unavailable} rather than call a
/// lock free because a server did not answer.
std::vector<LockFacts> survey(Loop& loop, std::span<redis::Server> servers, const Scope& scope, Milliseconds timeout);

/// The newest `count` runs of each lock that have ended.
std::vector<History> survey_histories(
    Loop& loop, std::span<redis::Server> servers, const Scope& scope, std::size_t count, Milliseconds timeout);

/// The masters of a cluster that serve slots, or should, each as a server of its own.
std::vector<redis::Server> find_masters(Loop& loop, redis::Server& cluster, Milliseconds timeout);

}  // namespace rlock::observe
