#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "redis/address.h"
#include "redis/connection.h"
#include "redis/locator.h"
#include "redis/reply.h"

namespace rlock::redis {

/// What one URL names; which node answers for it may change. Has the interface of a Connection, and is as passive.
/// Redirections of a cluster are followed; a node that fails is looked for anew at once where others may know better,
/// else in the next exchange: what is asked here may be asked twice.
class Server {
 public:
  explicit Server(const Address& address, ReplyLimits limits = {});

  const Address& address() const { return address_; }
  /// The node that is asked now; nullptr while it is not known.
  const Address* node() const { return node_ ? &node_->address() : nullptr; }

  /// On which channel of its node it listens from the end of the next exchange on; empty: on none.
  void listen_on(std::string channel);

  void begin(const std::vector<Command>& commands, Deadline deadline);
  /// As Connection's: on the connection that the last answer came from.
  void follow_up(const std::vector<Command>& commands, Deadline deadline);
  pollfd interest() const;
  Deadline deadline() const;
  bool advance();
  std::vector<Reply> take_replies() { return std::move(replies_); }
  bool was_asked() const { return asked_ || (node_ && node_->was_asked()); }
  bool was_reached() const { return reached_ || (node_ && node_->was_reached()); }
  /// The next exchange looks for the node anew.
  void forget_node();
  /// As Connection's, of an exchange whose answer is of no interest any more.
  void abandon();

  /// As Connection's, between exchanges.
  void hear();
  std::vector<std::string> take_messages();
  bool listens() const { return node_ && node_->listens(); }
  /// Why it may not listen, if the server has refused: it does not try again.
  const std::optional<Error>& refusal_to_listen() const { return refusal_to_listen_; }

 private:
  enum class State { idle, locating, asking };

  void locate();
  bool step();
  void ask(const Address& node, Deadline deadline);
  std::vector<Command> commands_for_node() const;
  void take_answers();
  bool look_at_answers();
  bool follow(const Reply& redirection);
  bool must_stop_listening();

  Address address_;
  ReplyLimits limits_;
  Locator locator_;
  std::unique_ptr<Connection> node_;
  State state_ = State::idle;
  std::vector<Command> commands_;
  Deadline deadline_ = never;
  std::size_t chances_left_ = 0;
  bool follows_up_ = false;  // the question is for that connection alone
  int redirections_ = 0;
  bool knows_cluster_ = false;
  bool asks_for_nodes_ = false;    // before its commands, in this exchange
  bool asking_elsewhere_ = false;  // after ASK: for this once
  std::string channel_;
  std::optional<Error> refusal_to_listen_;
  std::vector<Reply> replies_;
  bool asked_ = false;
  bool reached_ = false;
};

}  // namespace rlock::redis
