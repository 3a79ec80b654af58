#pragma once

#include <cstddef>

#include "redis/reply.h"
#include "redis/server.h"

namespace rlock::observe {

/// How much of what a server, or who answers in its place, says of all its locks is kept: it must not fill our memory.
class Budget {
 public:
  explicit Budget(const redis::Server& server) : server_(server) {}

  /// Throws Error{unavailable} when all is spent.
  void spend(std::size_t bytes);
  void spend(const redis::Reply& reply);

 private:
  const redis::Server& server_;
  std::size_t left_ = 128UL * 1024 * 1024;
};

}  // namespace rlock::observe
