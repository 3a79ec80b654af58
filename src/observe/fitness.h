#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "redis/server.h"

namespace rlock::observe {

/// What fixes something: in words, as lines for redis-cli, and in words what the lines do not fix.
struct Remedy {
  std::string words{};
  std::vector<std::string> lines{};
  std::string afterwards{};

  friend bool operator==(const Remedy&, const Remedy&) = default;
};

/// One fact about a server, and whether it is good enough for locks.
struct Finding {
  enum class Grade { ok, warn, fail };
  Grade grade = Grade::ok;
  std::string_view topic;
  std::string text{};
  Remedy remedy{};  // empty where there is nothing to do

  friend bool operator==(const Finding&, const Finding&) = default;
};

/// The topic of what our user may do, and may not. What else keeps a server from taking writes has another.
constexpr std::string_view topic_of_permissions = "permissions";

/// The result of an examination.
struct Fitness {
  std::vector<Finding> findings{};
  std::string acl_line{};  // gives a user the least permissions needed; empty where something else keeps us from trying
                           // them, and before Redis 6, which has no users
  std::string acl_save{};  // what makes the line survive a restart; empty where nothing can, or it is not known
  std::string acl_loss{};  // in that case, what becomes of the line
  std::string own_user{};  // to whom the line gives the permissions; empty where it makes a new user
  std::string run_id{};    // tells servers apart whatever their names are; empty where it is not known
  Milliseconds votes_in{};  // of one of several servers: when it may vote; 0 is now
};

struct ExamineOptions {
  std::string prefix;
  Milliseconds timeout{2000};
  std::string new_password;  // for a user that the ACL line makes
  Milliseconds max_lease{};  // not 0: the server is one of several, which need not persist its locks, but does not
                             // vote before it has been up for so long
};

/// Finds out whether the server that a URL names, or every master of a cluster, can be trusted with locks: version,
/// role, eviction, persistence, replicas, clock and our permissions. Throws Error when it cannot be reached or refuses
/// our credentials.
Fitness examine(redis::Server& server, const ExamineOptions& how);

}  // namespace rlock::observe
