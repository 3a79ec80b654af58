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

/// One server, connected to when first needed and again after every failure. One exchange at a time: commands out,
/// as many replies back; between exchanges it may listen. Entirely passive: the caller polls interest() until the
/// deadline and calls advance(), or hear() where it has asked nothing.
///
/// Everything that fails throws an Error that names the server, and closes the connection: a late reply can then
/// never be taken for the next one's.
class Connection {
 public:
  explicit Connection(Address address, ReplyLimits limits = {}) : address_(std::move(address)), limits_(limits) {}

  const Address& address() const { return address_; }

  /// On which channel it listens from the end of the next exchange on; empty: on none.
  void listen_on(std::string channel);

  /// Begins an exchange that must end by `deadline`: look-up, connecting, authentication and selecting the database
  /// included where they are still to be done. An exchange that has neither ended nor been abandoned is given up with
  /// its connection.
  void begin(std::vector<Command> commands, Deadline deadline);

  /// The same for commands that make sense only on the connection of the last exchange, such as WAIT. Throws where that
  /// connection is lost.
  void follow_up(std::vector<Command> commands, Deadline deadline);

  /// Nobody waits for the answers any more. The connection stays: what was not sent yet never is, and an answer that
  /// comes before the exchange's deadline is read and dropped.
  void abandon();

  pollfd interest() const;
  /// When to call advance() at the latest.
  Deadline deadline() const;

  /// Goes on after the descriptor became ready or the deadline passed. True when every reply is there.
  bool advance();

  /// The replies of the exchange that advance() ended, in the order of its commands.
  std::vector<Reply> take_replies() { return dialogue_->take_answers(); }

  /// Reads some of what comes between exchanges: messages, answers that nobody waits for any more, the end of the
  /// connection. Goes on with opening one that was begun. Never throws: what fails closes the connection.
  void hear();
  /// What was said on the channel since the last answer.
  std::vector<std::string> take_messages();
  /// Whether the server has confirmed that we listen.
  bool listens() const { return state_ == State::ready && dialogue_->listens(); }
  /// Why we may not, if it has refused.
  std::optional<Error> refusal_to_listen() const;

  bool is_open() const { return state_ == State::ready; }
  /// Whether this server ever answered a question; to let us in is none.
  bool was_reached() const { return reached_; }
  /// Whether a request has ever left for it.
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
  Deadline opening_deadline_ = never;   // until it is open: that of the exchange for which opening was begun
  bool asked_ = false;
  bool reached_ = false;
};

}  // namespace rlock::redis
