#pragma once

#include <string>
#include <vector>

#include "base/duration.h"
#include "base/loop.h"
#include "lock/name.h"
#include "observe/budget.h"
#include "redis/server.h"

namespace rlock::observe {

/// Which locks: those named and those that match a pattern; where there is neither, all.
struct Scope {
  std::string prefix;
  std::vector<lock::LockName> names{};
  std::vector<std::string> patterns{};  // as a shell's
  bool remembered = false;              // of those not named also the free ones that Redis remembers

  bool must_list() const { return names.empty() || !patterns.empty(); }
  /// Of a lock that was listed.
  bool includes(const std::string& name) const;
};

/// Whether a word of the command line is a pattern: it has one of * ? [.
bool is_pattern(std::string_view word);

/// The locks of the scope that are not named, and foreign keys among them, in order of name, found by SCAN so that the
/// server is never blocked. Ends whatever the server answers.
std::vector<lock::LockName> list_locks(
    Loop& loop, redis::Server& server, const Scope& scope, Milliseconds timeout, Budget& budget);

/// A few hundred of them at most, as they come.
std::vector<lock::LockName> sample_locks(
    Loop& loop, redis::Server& server, const Scope& scope, Milliseconds timeout, Budget& budget);

/// What a connection for all of this must accept.
constexpr redis::ReplyLimits listing_limits{.bytes = 16UL * 1024 * 1024, .elements = 200'000};

}  // namespace rlock::observe
