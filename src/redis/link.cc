#include "redis/link.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "redis/resolve.h"
#include "redis/tls.h"

namespace rlock::redis {
namespace {

Error broken(int error_number) {
  return {ExitCode::unavailable, std::string{"connection failed: "} + ::strerror(error_number)};
}

/// Small requests are sent at once, and a peer that is gone is noticed within half a minute even if we only listen.
void set_options(int fd) {
  const auto set = [fd](int option, int value) { ::setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value); };
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  set(TCP_NODELAY, on);
  set(TCP_KEEPIDLE, 15);
  set(TCP_KEEPINTVL, 5);
  set(TCP_KEEPCNT, 3);
}

bool must_wait(int error_number) { return error_number == EAGAIN || error_number == EINTR; }

/// A unix socket whose queue of connections is full does not signal when it has room again.
constexpr std::chrono::milliseconds full_queue_pause{10};

/// A non-blocking stream to one address.
class Socket {
 public:
  /// Begins to connect. Throws Error{os} if no socket can be made, Error{unavailable} if it is refused at once.
  explicit Socket(const SocketAddress& address);

  int fd() const { return fd_.get(); }

  /// When to call is_connected() although the descriptor is not ready; the descriptor tells nothing until then.
  Deadline again() const { return again_; }
  /// Whether the connection is established; throws Error{unavailable} if it was refused.
  bool is_connected();

  /// Whether there is something to read: bytes, or the end of the stream.
  bool is_readable() const;

  /// How many bytes passed; 0 if it would block. Throws Error{unavailable} if the stream is broken or has ended.
  std::size_t write(std::string_view bytes);
  std::size_t read(std::span<char> into);

 private:
  void connect();

  SocketAddress address_;
  Fd fd_;
  Deadline again_ = never;
};

Socket::Socket(const SocketAddress& address)
    : address_(address), fd_(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (!fd_ && errno == EAFNOSUPPORT)  // an IPv6 address on a machine without IPv6, for example
    throw broken(errno);
  if (!fd_)
    throw os_error("cannot make a socket", errno);
  if (address.storage.ss_family != AF_UNIX)
    set_options(fd());
  connect();
}

void Socket::connect() {
  const auto* target = reinterpret_cast<const sockaddr*>(&address_.storage);
  again_ = never;
  if (::connect(fd(), target, address_.length) == 0 || errno == EINPROGRESS)
    return;
  if (errno != EAGAIN)
    throw broken(errno);
  again_ = BootClock::now() + full_queue_pause;
}

bool Socket::is_connected() {
  if (again_ != never) {
    if (BootClock::now() >= again_)
      connect();
    if (again_ != never)
      return false;
  }
  pollfd writable{fd(), POLLOUT, 0};
  if (::poll(&writable, 1, 0) < 1)
    return false;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0)
    throw broken(error);
  return true;
}

bool Socket::is_readable() const {
  pollfd readable{fd(), POLLIN, 0};
  return ::poll(&readable, 1, 0) != 0;
}

std::size_t Socket::write(std::string_view bytes) {
  const ssize_t count = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count >= 0)
    return static_cast<std::size_t>(count);
  if (must_wait(errno))
    return 0;
  throw broken(errno);
}

std::size_t Socket::read(std::span<char> into) {
  const ssize_t count = ::recv(fd(), into.data(), into.size(), 0);
  if (count > 0)
    return static_cast<std::size_t>(count);
  if (count < 0 && must_wait(errno))
    return 0;
  if (count == 0 || errno == ECONNRESET)
    throw Error{ExitCode::unavailable, std::string{Link::closed}};
  throw broken(errno);
}

}  // namespace

struct Link::Stream {
  enum class State {
    looking_up,  // lookup
    connecting,  // socket to addresses[next_address - 1], once it is made
    securing,    // tls
    open,
  };

  bool open();
  std::string what_is_late() const;
  bool look_up();
  void connect();
  void try_address();

  Endpoint endpoint;
  std::optional<TlsOptions> tls_options;
  Deadline deadline;
  std::optional<Lookup> lookup{std::in_place, endpoint};
  State state = State::looking_up;
  std::vector<SocketAddress> addresses{};
  std::size_t next_address = 0;
  Deadline address_deadline = never;  // for the address being tried, when others are left
  std::optional<Socket> socket{};
  std::optional<Tls> tls{};
};

bool Link::Stream::open() {
  if (state == State::looking_up && !look_up())
    return false;
  if (state == State::connecting)
    connect();
  if (state == State::securing && tls->handshake())
    state = State::open;
  return state == State::open;
}

std::string Link::Stream::what_is_late() const {
  switch (state) {
    case State::looking_up:
      return fmt::format("cannot look up '{}' in time", endpoint.host);
    case State::connecting:
      return "cannot connect in time";
    case State::securing:
      return "TLS: no answer in time; does the server speak TLS on this port?";
    case State::open:
      break;
  }
  return "no answer in time";
}

bool Link::Stream::look_up() {
  auto found = lookup->advance();
  if (!found)
    return false;
  lookup.reset();
  addresses = *std::move(found);
  state = State::connecting;
  return true;
}

/// An address that fails is followed by the next one.
void Link::Stream::connect() {
  while (state == State::connecting) {
    try {
      if (!socket)
        try_address();
      if (BootClock::now() >= address_deadline)
        throw Error{ExitCode::unavailable, what_is_late()};
      if (!socket->is_connected())
        return;
      if (tls_options)
        tls.emplace(*tls_options, endpoint.host, socket->fd());
      state = tls_options ? State::securing : State::open;
    } catch (const Error& error) {
      tls.reset();
      socket.reset();
      if (error.code() != ExitCode::unavailable || next_address >= addresses.size())
        throw;
    }
  }
}

/// Each address but the last gets a share of the time, so that one that swallows packets leaves some for the others.
void Link::Stream::try_address() {
  const auto left = static_cast<long>(addresses.size() - next_address);
  const auto now = BootClock::now();
  address_deadline = left > 1 ? now + (deadline - now) / left : never;
  socket.emplace(addresses[next_address++]);
}

Link::Link(const Endpoint& endpoint, const std::optional<TlsOptions>& tls, Deadline deadline)
    : stream_(new Stream{.endpoint = endpoint, .tls_options = tls, .deadline = deadline}) {}

Link::~Link() = default;

bool Link::open() { return stream_->open(); }

std::string Link::what_is_late() const { return stream_->what_is_late(); }

Deadline Link::deadline() const {
  const Stream& s = *stream_;
  if (s.state != Stream::State::connecting)
    return never;
  return s.socket ? std::min(s.address_deadline, s.socket->again()) : s.address_deadline;
}

pollfd Link::interest(bool has_to_write) const {
  const Stream& s = *stream_;
  if (s.lookup)
    return {s.lookup->fd(), POLLIN, 0};
  if (!s.socket || s.socket->again() != never)
    return {-1, 0, 0};
  const bool writing = s.tls ? s.tls->wants_to_write() : has_to_write || s.state == Stream::State::connecting;
  return {s.socket->fd(), static_cast<short>(writing ? POLLOUT : POLLIN), 0};
}

bool Link::is_readable() const { return stream_->socket->is_readable(); }

std::size_t Link::write(std::string_view bytes) {
  return stream_->tls ? stream_->tls->write(bytes) : stream_->socket->write(bytes);
}

std::size_t Link::read(std::span<char> into) {
  return stream_->tls ? stream_->tls->read(into) : stream_->socket->read(into);
}

std::string library_versions() {
  return fmt::format(
      "{}\nhiredis {}.{}.{}\n", ::OpenSSL_version(OPENSSL_VERSION), HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

}  // namespace rlock::redis
