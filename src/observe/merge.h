#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/facts.h"

namespace rlock::observe {

/// What one server of a quorum says about the locks. All views cover the same locks in the same order; `facts` is empty
/// when the server did not answer.
struct ServerView {
  std::string url;
  std::optional<std::vector<LockFacts>> facts;
};

/// Merges the views of `count` locks into one. A lock is free when a majority says so. A holder counts if a majority
/// knows it, or could know it if the silent servers do.
std::vector<LockFacts> merge(const std::vector<ServerView>& views, std::size_t count);

}  // namespace rlock::observe
