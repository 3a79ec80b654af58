#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "redis/address.h"
#include "redis/link.h"
#include "redis/reply.h"

namespace rlock::redis {

/// What a follow-up is told whose connection is gone: on another it would mean something else.
Error connection_lost(const Address& address);

/// The connection to one server, opened when first needed and again after every failure. It carries one exchange at a
/// time: commands out, as many replies back. Between exchanges it may listen on a channel. It is entirely passive: the
/// caller polls interest() until deadline() and calls advance(), or hear() while no exchange is under way.
///
/// It hides look-up, TLS, AUTH, SELECT and ROLE, and that a connection which listens cannot ask: each question is sent
/// in one piece, UNSUBSCRIBE, the commands, SUBSCRIBE, and what comes back is sorted into answers and messages.
///
/// Every failure throws an Error that names the server and closes the connection, so that a late reply can never be
/// taken for the answer to the next question.
class Connection {
 public:
  /// `is_known`: this server has answered before, on another connection.
  explicit Connection(Address address, ReplyLimits limits = {}, bool is_known = false)
      : address_(std::move(address)), limits_(limits), is_known_(is_known) {}

  const Address& address() const { return address_; }

  /// Sets the channel on which it listens from the end of the next exchange on; an empty one stops listening.
  void listen_on(std::string channel) { channel_ = std::move(channel); }

  /// Begins an exchange that must end by `deadline`, including look-up, connecting, authentication and SELECT if they
  /// are still to be done. An earlier exchange that has neither ended nor been abandoned is dropped, and so is its
  /// connection if that is open. Messages received before it are forgotten, since the answer will be newer.
  void begin(std::vector<Command> commands, Deadline deadline);

  /// The same for commands that make sense only on the connection of the last exchange, such as WAIT. Throws if that
  /// connection was lost.
  void follow_up(std::vector<Command> commands, Deadline deadline);

  /// Says that nobody waits for the answers any more. A request that has not been sent never will be. The connection
  /// stays unless a part of the request may have left; answers that come before the deadline are read and dropped.
  void abandon();

  pollfd interest() const { return link_ ? link_->interest(!outgoing_.empty()) : pollfd{-1, 0, 0}; }
  /// When to call advance() at the latest.
  Deadline deadline() const;

  /// To be called when the descriptor is ready or the deadline has passed. True when every reply has arrived.
  bool advance();

  /// The replies of the exchange that advance() ended, in the order of its commands.
  std::vector<Reply> take_replies() { return std::move(talk_->answers); }

  /// Reads some of what comes between exchanges: messages, answers that nobody waits for any more, the end of the
  /// stream. Continues opening a connection if that was begun. Never throws: a failure closes the connection.
  void hear();
  /// The messages on the channel since the last answer.
  std::vector<std::string> take_messages();
  /// Whether the server has confirmed that we listen.
  bool listens() const { return is_open() && talk_->listens; }
  /// Why we may not listen, if the server has refused SUBSCRIBE or UNSUBSCRIBE. After a refused UNSUBSCRIBE, when it
  /// still listens, nothing more can be asked.
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

  /// A reply that is still to come.
  struct Due {
    enum class Kind { answer, dropped, unsubscribed, subscribed };
    Kind kind;
    Deadline until;  // later than that, the connection is taken for dead, even if more was asked meanwhile
  };

  /// What has been said on a link.
  struct Talk {
    explicit Talk(ReplyLimits limits) : reader(limits) {}
    bool is_answered() const { return due.empty(); }

    ReplyReader reader;
    std::deque<Due> due;  // in the order in which they come
    std::vector<Reply> answers;
    std::vector<std::string> messages;
    std::string channel;  // of the last SUBSCRIBE that was sent
    bool listens = false;
    std::optional<Error> refusal;
  };

  void start(std::vector<Command> commands, Deadline deadline);
  void check_for_news();
  Deadline limit() const;
  std::string what_is_late() const;
  bool step();
  void open();
  std::vector<Command> introductions();
  void introduce();
  void say_next();
  void check_introduction(const Reply& reply) const;
  [[noreturn]] void refuse_introduction(const Reply& reply) const;
  std::string password_origin() const;
  void say(const std::vector<Command>& commands, Due::Kind due);
  void ask(const std::vector<Command>& commands);
  bool exchange();
  bool flush();
  void read();
  std::size_t read_from_link(std::span<char> into);
  void feed(std::string_view bytes);
  void dispatch(Reply reply);

  Address address_;
  ReplyLimits limits_;
  bool is_known_;
  std::string channel_;
  State state_ = State::closed;
  std::optional<Link> link_;
  std::optional<Talk> talk_;            // on this link, or on the last one
  std::vector<Command> introductions_;  // still to be sent
  std::vector<Command> request_;        // held back until introduced
  std::string password_;                // that was sent on this link
  std::string outgoing_;                // bytes that have not left yet
  bool is_asking_ = false;              // somebody waits for an answer
  Deadline deadline_ = never;           // of the last exchange
  Deadline opening_deadline_ = never;   // while it opens: that of the exchange which began to open it
  bool asked_ = false;
  bool reached_ = false;
};

}  // namespace rlock::redis
