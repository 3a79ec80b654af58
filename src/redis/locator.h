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

/// Finds the node to talk to. A plain URL names it. Sentinels are asked in turn for the master, and one of them again
/// before each use unless its answer is less than 100 ms old, since a master that was replaced on purpose keeps that
/// role for ten seconds. In a cluster any node will do until one tells us which node serves our key. Passive like a
/// Connection.
class Locator {
 public:
  explicit Locator(const Address& address) : address_(address), candidates_(address.endpoints) {}

  void begin(Deadline deadline);
  pollfd interest() const { return sentinel_->interest(); }
  Deadline deadline() const { return sentinel_->deadline(); }
  /// The node once it is known. Throws if no sentinel could name it, now or earlier: with all their
  /// complaints, and the exit status of the last.
  std::optional<Address> advance();

  /// Whether begin() will have to ask a sentinel.
  bool must_ask() const;
  /// Whether the node was named by the URL, a sentinel or the cluster, rather than guessed.
  bool is_certain() const { return known_ || address_.kind == Address::Kind::node; }
  /// How many nodes are worth trying in one exchange.
  std::size_t chances() const { return address_.kind == Address::Kind::node ? 1 : candidates_.size(); }
  /// Whether a sentinel has ever named a master.
  bool was_reached() const { return reached_; }

  /// To be called when the node did not answer or has changed its role: it is looked up again next time.
  void forget();
  /// To be called when a node of the cluster has named the one that serves our key.
  void moved_to(const Endpoint& endpoint) { known_ = endpoint; }
  /// Tells it of a cluster's other nodes, since those of the URL may be gone one day.
  void learn(std::vector<Endpoint> nodes);

 private:
  bool ask_sentinels();
  void begin_with_next_sentinel();
  const Endpoint& candidate() const { return candidates_[next_ % candidates_.size()]; }

  Address address_;
  std::vector<Endpoint> candidates_;  // sentinels, or nodes of the cluster
  std::size_t next_ = 0;              // the candidate to try
  std::optional<Endpoint> known_;
  Deadline believed_until_{};  // until then a sentinel's answer is not asked for again
  std::unique_ptr<Connection> sentinel_;
  std::size_t left_to_ask_ = 0;
  std::string complaints_;  // of the sentinels asked so far
  Deadline deadline_ = never;
  bool reached_ = false;
};

}  // namespace rlock::redis
