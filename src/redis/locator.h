#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

/// Finds the node to talk to. A plain URL names it; sentinels are asked in turn who the master is, and one of them
/// again before each use, since a master that was replaced on purpose goes on as one for ten seconds; of a cluster any
/// node will do until one says who serves our key. Passive like a Connection.
class Locator {
 public:
  explicit Locator(const Address& address) : address_(address), candidates_(address.endpoints) {}

  void begin(Deadline deadline);
  pollfd interest() const { return sentinel_->interest(); }
  Deadline deadline() const { return sentinel_->deadline(); }
  /// The node once it is known. Throws Error{unavailable} when nobody could tell, now or before.
  std::optional<Address> advance();

  /// Whether begin() has to ask somebody.
  bool must_ask() const;
  /// Whether the node was named by one who should know, rather than guessed.
  bool is_certain() const { return known_ || address_.kind == Address::Kind::node; }
  /// How many answers there may be to the question where the node is.
  std::size_t chances() const { return address_.kind == Address::Kind::node ? 1 : candidates_.size(); }
  /// Whether a sentinel has ever named a master.
  bool was_reached() const { return reached_; }

  /// The node did not answer, or is not what it was: another is looked for next time.
  void forget();
  /// A cluster's node has named the one that serves our key.
  void moved_to(const Endpoint& endpoint) { known_ = endpoint; }
  /// A cluster's other nodes: those of the URL may be gone one day.
  void learn(std::vector<Endpoint> nodes);

 private:
  bool ask_sentinels();
  void begin_with_next_sentinel();
  const Endpoint& candidate() const { return candidates_[next_ % candidates_.size()]; }

  Address address_;
  std::vector<Endpoint> candidates_;  // sentinels, or nodes of the cluster
  std::size_t next_ = 0;              // of them: the one to try
  std::optional<Endpoint> known_;
  Deadline believed_until_{};  // what a sentinel said
  std::unique_ptr<Connection> sentinel_;
  std::size_t left_to_ask_ = 0;
  std::string complaints_;  // of the sentinels asked so far
  Deadline deadline_ = never;
  bool reached_ = false;
};

}  // namespace rlock::redis
