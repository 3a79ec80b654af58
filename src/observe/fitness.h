#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "base/loop.h"
#include "redis/server.h"

namespace rlock::observe {

/// One fact about a server, and whether locks can live with it.
struct Finding {
  enum class Grade { ok, warn, fail };
  Grade grade = Grade::ok;
  std::string_view topic;
  std::string text;

  friend bool operator==(const Finding&, const Finding&) = default;
};

struct Fitness {
  std::vector<Finding> findings;
  std::string acl_line;  // creates a user that may do just what is needed; empty where there are no users yet
};

/// How to examine.
struct Examination {
  std::string prefix;
  Milliseconds timeout{2000};
  bool quorum = false;  // the server is one of several: it may forget
};

/// Whether what one URL names can be trusted with locks, of a cluster all its masters: version, role, eviction,
/// persistence, replicas, clock, and what it permits us. Throws Error when it cannot be reached or refuses who we are.
Fitness examine(Loop& loop, redis::Server& server, const Examination& how);

}  // namespace rlock::observe
