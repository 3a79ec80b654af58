#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

/// Finds the node to talk to. A plain URL names it; sentinels are asked in turn who the master is; of a cluster any
/// node will do until one says who serves our key. Passive like a Connection.
class Locator {
 public:
  explicit Locator(const Address& address) : address_(address) {}

  void begin(Deadline deadline);
  pollfd interest() const { return sentinel_->interest(); }
  Deadline deadline() const { return sentinel_->deadline(); }
  /// The node once it is known. Throws Error{unavailable} when nobody could tell.
  std::optional<Address> advance();

  /// The node did not answer, or is not what it was: another is looked for next time.
  void forget();
  /// A cluster's node has named the one that serves our key.
  void moved_to(const Endpoint& endpoint) { known_ = endpoint; }

 private:
  std::optional<Endpoint> ask_sentinels();
  void begin_with_next_sentinel();

  Address address_;
  std::optional<Endpoint> known_;
  std::size_t next_ = 0;  // of the endpoints: the one to try
  std::unique_ptr<Connection> sentinel_;
  std::size_t left_to_ask_ = 0;
  std::string complaints_;  // of the sentinels asked so far
  Deadline deadline_ = never;
};

}  // namespace rlock::redis
