#pragma once

#include <cstddef>

#include "redis/reply.h"
#include "redis/server.h"

namespace rlock::observe {

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

}  // namespace rlock::observe
