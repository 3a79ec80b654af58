#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "redis/address.h"
#include "redis/reply.h"
#include "redis/resolve.h"
#include "redis/socket.h"
#include "redis/tls.h"

namespace rlock::redis {

/// One server, connected to when first needed and again after every failure. One exchange at a time: commands out,
/// as many replies back. Entirely passive: the caller polls interest() until the deadline and calls advance().
///
/// Everything that fails throws an Error that names the server, and closes the connection: a late reply can then
/// never be taken for the next one's.
class Connection {
 public:
  explicit Connection(Address address, ReplyLimits limits = {});

  const Address& address() const { return address_; }

  /// Begins an exchange that must end by `deadline`: look-up, connecting, authentication and selecting the database
  /// included where they are still to be done. An exchange that has not ended is abandoned with its connection.
  void begin(const std::vector<Command>& commands, Deadline deadline);

  /// The same for commands that make sense only on the connection of the last exchange, such as WAIT. Throws where that
  /// connection is lost.
  void follow_up(const std::vector<Command>& commands, Deadline deadline);

  /// Begins to wait for one pushed message, however long it takes. Needs an open connection.
  void listen();

  pollfd interest() const;
  /// When to call advance() at the latest.
  Deadline deadline() const { return state_ == State::connecting ? address_deadline_ : deadline_; }

  /// Goes on after the descriptor became ready or the deadline passed. True when every reply is there.
  bool advance();

  /// The replies of the exchange that advance() ended, in the order of its commands.
  std::vector<Reply> take_replies();

  bool is_open() const { return state_ == State::ready; }
  /// Whether an answer of this server was ever seen.
  bool was_reached() const { return reached_; }
  /// Whether a request has ever left for it.
  bool was_asked() const { return asked_; }
  void close();

 private:
  enum class State {
    closed,
    looking_up,   // lookup_
    connecting,   // socket_ to addresses_[next_address_ - 1], once it is made
    securing,     // tls_
    introducing,  // AUTH, then SELECT and ROLE, one at a time
    ready,
  };

  bool is_idle() const;
  void start(const std::vector<Command>& commands, Deadline deadline);
  std::string what_is_late() const;
  bool step();
  bool look_up();
  void connect();
  void try_address();
  void start_talking();
  std::vector<Command> introductions() const;
  void introduce();
  bool exchange();
  bool flush();
  std::optional<Reply> read_reply();
  void check_introduction(const Reply& reply) const;

  Address address_;
  ReplyLimits limits_;
  State state_ = State::closed;
  std::optional<Lookup> lookup_;
  std::vector<SocketAddress> addresses_;
  std::size_t next_address_ = 0;
  Deadline address_deadline_ = never;  // for the address being tried, when others are left
  std::optional<Socket> socket_;
  std::optional<Tls> tls_;
  std::optional<ReplyReader> reader_;
  std::vector<Command> introductions_;  // still to be sent
  std::string outgoing_;                // bytes of the step under way
  std::string request_;                 // bytes of the exchange, held back until introduced
  std::size_t expected_ = 0;
  std::vector<Reply> replies_;
  Deadline deadline_ = never;
  bool asked_ = false;
  bool reached_ = false;
};

}  // namespace rlock::redis
