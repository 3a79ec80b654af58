#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/facts.h"

namespace rlock::observe {

/// What one server of a quorum says of the same `count` locks, in the same order; nothing where it did not answer.
struct ServerView {
  std::string url;
  std::optional<std::vector<LockFacts>> facts;
};

/// One view of many. A lock is free when a majority says so; it is held by those whom a majority knows, or may know if
/// the silent ones were asked.
std::vector<LockFacts> merge(const std::vector<ServerView>& views, std::size_t count);

}  // namespace rlock::observe
