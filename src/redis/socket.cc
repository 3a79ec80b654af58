#include "redis/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"

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

}  // namespace

Socket::Socket(const SocketAddress& address)
    : fd_(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (!fd_ && errno == EAFNOSUPPORT)  // an IPv6 address on a machine without IPv6, for example
    throw broken(errno);
  if (!fd_)
    throw os_error("cannot make a socket", errno);
  if (address.storage.ss_family != AF_UNIX)
    set_options(fd());
  const auto* target = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(fd(), target, address.length) < 0 && errno != EINPROGRESS)
    throw broken(errno);
}

bool Socket::is_connected() const {
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
  if (count == 0)
    throw Error{ExitCode::unavailable, "the server closed the connection"};
  throw broken(errno);
}

}  // namespace rlock::redis
