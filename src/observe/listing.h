#pragma once

#include <string>
#include <vector>

#include "base/duration.h"
#include "lock/name.h"
#include "redis/reply.h"
#include "redis/server.h"

namespace rlock::observe {

/// Which locks to look at: those named and those that match a pattern, or all where there is neither.
struct Scope {
  std::string prefix;
  std::vector<lock::LockName> names{};
  std::vector<std::string> patterns{};  // globs, as in a shell
  bool remembered = false;              // list free locks too, as far as Redis remembers them

  bool must_list() const { return names.empty() || !patterns.empty(); }
  /// Whether a lock that was listed belongs to the scope.
  bool includes(const std::string& name) const;
};

/// Whether a word of the command line is a pattern, which contains one of * ? [.
bool is_pattern(std::string_view word);

/// Limits how much of a server's answers about all its locks is kept, so that a faulty or hostile server cannot fill
/// our memory.
class Budget {
 public:
  /// The server must outlive the budget.
  explicit Budget(const redis::Server& server) : server_(server) {}

  /// Throws Error{unavailable} when the budget is exceeded.
  void spend(std::size_t bytes);
  void spend(const redis::Reply& reply);

 private:
  const redis::Server& server_;
  std::size_t left_ = 128UL * 1024 * 1024;
};

/// Lists the locks that match the scope's patterns, or all where it has none, and foreign keys among them, ordered by
/// name; those that it only names are not looked for. Uses SCAN, so
/// that the server is never blocked, and terminates whatever the server answers.
std::vector<lock::LockName> list_locks(redis::Server& server, const Scope& scope, Milliseconds timeout, Budget& budget);

/// Lists those among the first thousand keys or so, in no particular order.
std::vector<lock::LockName> sample_locks(redis::Server& server,
                                         const Scope& scope,
                                         Milliseconds timeout,
                                         Budget& budget);

/// How large the replies may be on a connection that lists locks.
constexpr redis::ReplyLimits listing_limits{.bytes = 16UL * 1024 * 1024, .elements = 200'000};

}  // namespace rlock::observe
