#include "redis/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
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

/// ENOTCONN and EALREADY: the connection is still being made. EAGAIN is also a unix socket whose backlog is full,
/// which never becomes ready; the deadline ends that.
bool must_wait(int error_number) {
  return error_number == EAGAIN || error_number == EINTR || error_number == ENOTCONN || error_number == EALREADY;
}

}  // namespace

Socket::Socket(const SocketAddress& address)
    : fd_(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (!fd_) throw os_error("cannot make a socket", errno);
  const int on = 1;
  if (address.storage.ss_family != AF_UNIX) ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto* target = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(fd(), target, address.length) < 0 && errno != EINPROGRESS) throw broken(errno);
}

std::size_t Socket::write(std::string_view bytes) {
  const ssize_t count = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (must_wait(errno)) return 0;
  throw broken(errno);
}

std::size_t Socket::read(std::span<char> into) {
  const ssize_t count = ::recv(fd(), into.data(), into.size(), 0);
  if (count > 0) return static_cast<std::size_t>(count);
  if (count < 0 && must_wait(errno)) return 0;
  if (count == 0) throw Error{ExitCode::unavailable, "the server closed the connection"};
  throw broken(errno);
}

}  // namespace rlock::redis
