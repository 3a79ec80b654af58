#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/duration.h"
#include "observe/facts.h"
#include "observe/history.h"
#include "observe/listing.h"
#include "redis/server.h"

namespace rlock::observe {

// Asks the servers about many locks. Hides how they are asked in batches, and again where one fails or a lock moves.

/// What one server of a quorum says about the locks. All views cover the same locks in the same order; `facts` is empty
/// when the server did not answer.
struct ServerView {
  std::string url;
  std::optional<std::vector<LockFacts>> facts{};
};

/// Merges the views of `count` locks into one. A lock is free when a majority says so. A holder counts if a majority
/// knows it, or could know it if the silent servers do.
std::vector<LockFacts> merge(const std::vector<ServerView>& views, std::size_t count);

/// Gathers the facts of the locks from one server, from all masters of a cluster, or from a quorum, of which a majority
/// decides. The locks that the scope names come first, the others follow in order of name. Throws Error{unavailable}
/// rather than call a lock free because a server did not answer.
std::vector<LockFacts> survey(std::span<redis::Server> servers, const Scope& scope, Milliseconds timeout);

/// The newest `count` past runs of each lock.
std::vector<History> survey_histories(std::span<redis::Server> servers,
                                      const Scope& scope,
                                      std::size_t count,
                                      Milliseconds timeout);

/// The facts of some thousand locks of the scope at most, in no particular order. It asks once.
std::vector<LockFacts> sample(redis::Server& server, const Scope& scope, Milliseconds timeout);

}  // namespace rlock::observe
