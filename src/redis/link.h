#pragma once

#include <poll.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "redis/address.h"
#include "redis/resolve.h"
#include "redis/socket.h"
#include "redis/tls.h"

namespace rlock::redis {

/// A byte stream to one server: it looks up the name, connects to one of its addresses and negotiates TLS. Passive: the
/// caller polls interest() until deadline(). Every failure throws an Error, after which the link is of no use.
class Link {
 public:
  /// `deadline` is used to share out the time among the server's addresses; the caller enforces it.
  Link(const Endpoint& endpoint, const std::optional<TlsOptions>& tls, Deadline deadline);

  /// Continues opening the link; true once bytes can pass.
  bool open();
  /// When to call open() at the latest.
  Deadline deadline() const { return state_ == State::connecting ? address_deadline_ : never; }
  /// The message for a link that is not open in time: it says what took too long.
  std::string what_is_late() const;

  pollfd interest(bool has_to_write) const;
  /// Whether there is something to read: bytes, or the end of the stream.
  bool is_readable() const { return socket_->is_readable(); }
  /// How many bytes passed; 0 when it would block.
  std::size_t write(std::string_view bytes) { return tls_ ? tls_->write(bytes) : socket_->write(bytes); }
  std::size_t read(std::span<char> into) { return tls_ ? tls_->read(into) : socket_->read(into); }

 private:
  enum class State {
    looking_up,  // lookup_
    connecting,  // socket_ to addresses_[next_address_ - 1], once it is made
    securing,    // tls_
    open,
  };

  bool look_up();
  void connect();
  void try_address();

  Endpoint endpoint_;
  std::optional<TlsOptions> tls_options_;
  Deadline deadline_;
  State state_ = State::looking_up;
  std::optional<Lookup> lookup_;
  std::vector<SocketAddress> addresses_;
  std::size_t next_address_ = 0;
  Deadline address_deadline_ = never;  // for the address being tried, when others are left
  std::optional<Socket> socket_;
  std::optional<Tls> tls_;
};

}  // namespace rlock::redis
