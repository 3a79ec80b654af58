#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "redis/address.h"
#include "redis/connection.h"
#include "redis/locator.h"
#include "redis/reply.h"

namespace rlock::redis {

/// The server that one URL names: a single node, the master that sentinels name, or the node of a cluster that serves
/// the key. It has the interface of a Connection and is as passive. Redirections are followed. After a failure the node
/// is located again, in the same exchange if others can be asked, else in the next: a request may be sent twice.
class Server {
 public:
  explicit Server(const Address& address, ReplyLimits limits = {}, Log log = Log{Verbosity::quiet});

  const Address& address() const { return address_; }
  /// For the steps of an exchange; failures are for the caller to report.
  const Log& log() const { return log_; }
  /// The node in use; nullptr while it is not known.
  const Address* node() const { return node_ ? &node_->address() : nullptr; }

  /// As Connection's, on whichever node is in use.
  void listen_on(std::string channel);

  void begin(const std::vector<Command>& commands, Deadline deadline);
  /// As Connection's, on the connection that the last answer came from.
  void follow_up(const std::vector<Command>& commands, Deadline deadline);
  pollfd interest() const;
  Deadline deadline() const;
  bool advance();
  std::vector<Reply> take_replies() { return std::move(replies_); }
  bool was_asked() const { return asked_ || (node_ && node_->was_asked()); }
  bool was_reached() const { return reached_ || (node_ && node_->was_reached()); }
  /// Makes the next exchange locate the node again.
  void forget_node();
  /// As Connection's.
  void abandon();

  /// As Connection's.
  void hear();
  std::vector<std::string> take_messages();
  bool listens() const { return node_ && node_->listens(); }
  /// Why it may not listen, if the server has refused; it does not try again.
  const std::optional<Error>& refusal_to_listen() const { return refusal_to_listen_; }

 private:
  enum class State { idle, locating, asking };

  void locate();
  bool step();
  bool advance_node();
  void ask(const Address& node, Deadline deadline);
  std::vector<Command> commands_for_node() const;
  void take_answers();
  bool look_at_answers();
  bool follow(const Reply& redirection);
  bool must_stop_listening();

  Address address_;
  ReplyLimits limits_;
  Log log_;
  Locator locator_;
  std::unique_ptr<Connection> node_;
  State state_ = State::idle;
  std::vector<Command> commands_;
  Deadline deadline_ = never;
  std::size_t chances_left_ = 0;
  bool follows_up_ = false;  // the request must go to this connection or fail
  int redirections_ = 0;
  bool knows_cluster_ = false;
  bool asks_for_nodes_ = false;    // this exchange begins with CLUSTER NODES
  bool asking_elsewhere_ = false;  // after ASK, for this exchange only
  std::string channel_;
  std::optional<Error> refusal_to_listen_;
  std::vector<Reply> replies_;
  bool asked_ = false;
  bool reached_ = false;
};

}  // namespace rlock::redis
