#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "redis/address.h"
#include "redis/connection.h"
#include "redis/locator.h"
#include "redis/reply.h"

namespace rlock::redis {

/// The server that one URL names, and the loop in which its user waits for it. It hides what kind of server that is: a
/// single node, the master that sentinels name, or the nodes of a cluster, of which it asks the one that serves the
/// key. Redirections are followed. After a failure the node is located again, in the same exchange if others can be
/// asked, else in the next: a request may be sent twice.
///
/// call() asks and waits. To ask several servers at once, begin() an exchange with each, wait for interest() until
/// deadline(), and advance() each, as with a Connection.
class Server {
 public:
  Server(Loop& loop, const Address& address, ReplyLimits limits = {}, Log log = Log{Verbosity::quiet});

  Loop& loop() const { return *loop_; }
  const Address& address() const { return address_; }
  /// For the steps of an exchange; failures are for the caller to report.
  const Log& log() const { return log_; }
  bool was_asked() const { return asked_ || (node_ && node_->was_asked()); }
  bool was_reached() const { return reached_ || (node_ && node_->was_reached()); }

  /// Sends the commands and waits for their replies, while the loop's handlers run. What a handler throws passes
  /// through; the next exchange then drops this one.
  std::vector<Reply> call(const std::vector<Command>& commands, Deadline deadline);
  /// The same on the connection that the last answer came from; throws if that was lost.
  std::vector<Reply> follow_up(const std::vector<Command>& commands, Deadline deadline);

  /// Whether its keys are spread over several nodes: commands for several keys must then be sent one by one.
  bool is_spread() const { return address_.kind == Address::Kind::cluster; }
  /// Visits every node that has a part of the keys as a server of its own, or this server if it has them all.
  void visit_nodes(Deadline deadline, ReplyLimits limits, const std::function<void(Server&)>& visit);

  void begin(const std::vector<Command>& commands, Deadline deadline);
  pollfd interest() const;
  Deadline deadline() const;
  bool advance();
  std::vector<Reply> take_replies() { return std::move(replies_); }
  void abandon();

  /// Listening works as in Connection, on whichever node is in use.
  void listen_on(std::string channel);
  void hear();
  std::vector<std::string> take_messages();
  bool listens() const { return node_ && node_->listens(); }
  /// Why it may not listen, if the server has refused; it does not try again.
  const std::optional<Error>& refusal_to_listen() const { return refusal_to_listen_; }

 private:
  enum class State { idle, locating, asking };

  std::vector<Reply> finish();
  void forget_node();
  void locate();
  bool step();
  bool advance_node();
  void ask(const Address& node, Deadline deadline);
  std::vector<Command> commands_for_node() const;
  void take_answers();
  bool look_at_answers();
  bool follow(const Reply& redirection);
  bool must_stop_listening();

  Loop* loop_;
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
