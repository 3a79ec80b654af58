#pragma once

#include <poll.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "redis/address.h"
#include "redis/dialogue.h"
#include "redis/link.h"
#include "redis/reply.h"

namespace rlock::redis {

/// The connection to one server, opened when first needed and again after every failure. It carries one exchange at a
/// time: commands out, as many replies back. Between exchanges it may listen. It is entirely passive: the caller polls
/// interest() until deadline() and calls advance(), or hear() while no exchange is under way.
///
/// Every failure throws an Error that names the server and closes the connection, so that a late reply can never be
/// taken for the answer to the next question.
class Connection {
 public:
  explicit Connection(Address address, ReplyLimits limits = {}) : address_(std::move(address)), limits_(limits) {}

  const Address& address() const { return address_; }

  /// Sets the channel on which it listens from the end of the next exchange on; an empty one stops listening.
  void listen_on(std::string channel);

  /// Begins an exchange that must end by `deadline`, including look-up, connecting, authentication and SELECT if they
  /// are still to be done. An earlier exchange that has neither ended nor been abandoned is dropped, and so is its
  /// connection if that is open.
  void begin(std::vector<Command> commands, Deadline deadline);

  /// The same for commands that make sense only on the connection of the last exchange, such as WAIT. Throws if that
  /// connection was lost.
  void follow_up(std::vector<Command> commands, Deadline deadline);

  /// Says that nobody waits for the answers any more. A request that has not been sent never will be. The connection
  /// stays unless a part of the request may have left; answers that come before the deadline are read and dropped.
  void abandon();

  pollfd interest() const;
  /// When to call advance() at the latest.
  Deadline deadline() const;

  /// To be called when the descriptor is ready or the deadline has passed. True when every reply is there.
  bool advance();

  /// The replies of the exchange that advance() ended, in the order of its commands.
  std::vector<Reply> take_replies() { return dialogue_->take_answers(); }

  /// Reads some of what comes between exchanges: messages, answers that nobody waits for any more, the end of the
  /// stream. Continues opening a connection if that was begun. Never throws: a failure closes the connection.
  void hear();
  /// The messages on the channel since the last answer.
  std::vector<std::string> take_messages();
  /// Whether the server has confirmed that we listen.
  bool listens() const { return state_ == State::ready && dialogue_->listens(); }
  /// Why we may not listen, if the server has refused.
  std::optional<Error> refusal_to_listen() const;

  bool is_open() const { return state_ == State::ready; }
  /// Whether this server has ever answered a request; AUTH, SELECT and ROLE do not count.
  bool was_reached() const { return reached_; }
  /// Whether a request has ever been sent to it.
  bool was_asked() const { return asked_; }
  void close();

 private:
  enum class State {
    closed,
    opening,      // link_
    introducing,  // AUTH, then SELECT and ROLE, one at a time
    ready,
  };

  void start(std::vector<Command> commands, Deadline deadline);
  void check_for_news();
  Deadline limit() const;
  std::string what_is_late() const;
  bool step();
  void open();
  void start_talking();
  std::vector<Command> introductions() const;
  void introduce();
  void say_next();
  bool exchange();
  bool flush();
  void read();
  std::size_t read_from_link(std::span<char> into);
  void check_introduction(const Reply& reply) const;

  Address address_;
  ReplyLimits limits_;
  std::string channel_;
  State state_ = State::closed;
  std::optional<Link> link_;
  std::optional<Dialogue> dialogue_;
  std::vector<Command> introductions_;  // still to be sent
  std::vector<Command> request_;        // held back until introduced
  std::string outgoing_;                // bytes that have not left yet
  bool is_asking_ = false;              // somebody waits for an answer
  Deadline deadline_ = never;           // of the exchange, abandoned or not
  Deadline opening_deadline_ = never;   // while it opens: that of the exchange which began to open it
  bool asked_ = false;
  bool reached_ = false;
};

}  // namespace rlock::redis
