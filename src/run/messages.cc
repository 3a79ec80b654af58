#include "run/messages.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

namespace rlock::run {
namespace {

/// More than three times what the longest start order needs: a lock name of 512 bytes is sent plain and
/// percent-encoded.
constexpr std::size_t longest_message = 8192;

void send_bytes(int fd, std::span<const char> bytes, int flags = MSG_DONTWAIT) {
  while (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | flags) < 0 && errno == EINTR) {
  }
}

/// Receives one message and returns its length: 0 at the end of file or for a message longer than any that we send, -1
/// when no message has arrived yet.
ssize_t receive_bytes(int fd, std::span<char> into) {
  ssize_t count = 0;
  do {
    count = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT | MSG_TRUNC);
    // ECONNRESET says that the other side exited with messages unread. Its own last messages can still be received.
  } while (count < 0 && errno == ECONNRESET);
  if ((count < 0 && errno != EAGAIN && errno != EINTR) || count > static_cast<ssize_t>(into.size()))
    return 0;
  return count;
}

Line::Status status_of(ssize_t count, std::size_t least) {
  if (count < 0)
    return Line::Status::nothing;
  return static_cast<std::size_t>(count) < least ? Line::Status::closed : Line::Status::message;
}

}  // namespace

std::pair<Line, Line> Line::make() {
  auto [one, other] = make_socket_pair();
  return {Line{std::move(one)}, Line{std::move(other)}};
}

void Line::send(const Order& order, const std::string& environment) const {
  std::string bytes(reinterpret_cast<const char*>(&order), sizeof order);
  send_bytes(fd(), bytes += environment);
}

void Line::send(const News& news) const { send_bytes(fd(), {reinterpret_cast<const char*>(&news), sizeof news}); }

void Line::insist(const News& news) const { send_bytes(fd(), {reinterpret_cast<const char*>(&news), sizeof news}, 0); }

Line::Status Line::receive(Order& order, std::string& environment) const {
  std::array<char, longest_message> buffer;
  const ssize_t count = receive_bytes(fd(), buffer);
  const Status status = status_of(count, sizeof order);
  if (status != Status::message)
    return status;
  std::memcpy(&order, buffer.data(), sizeof order);
  environment.assign(buffer.data() + sizeof order, static_cast<std::size_t>(count) - sizeof order);
  return status;
}

Line::Status Line::receive(News& news) const {
  const ssize_t count = receive_bytes(fd(), {reinterpret_cast<char*>(&news), sizeof news});
  return status_of(count, sizeof news);
}

void Line::await_end() const {
  pollfd end{fd(), 0, 0};  // POLLHUP is reported without being requested
  while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace rlock::run
