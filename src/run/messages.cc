#include "run/messages.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <type_traits>

namespace rlock::run {
namespace {

/// More than three times what the longest start order needs: a lock name of 512 bytes is sent plain and
/// percent-encoded.
constexpr std::size_t longest_message = 8192;

bool send_bytes(int fd, std::span<const char> bytes, int flags) {
  ssize_t count = 0;
  do {
    count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | flags);
  } while (count < 0 && errno == EINTR);
  return count >= 0;
}

std::span<const char> bytes_of(const News& news) { return {reinterpret_cast<const char*>(&news), sizeof news}; }

/// Receives one message and returns its length: 0 at the end of file or for a message longer than any that we send, -1
/// when no message has arrived yet. A failure ends nothing: errno may be the child's, see Child::run.
ssize_t receive_bytes(int fd, std::span<char> into) {
  ssize_t count = 0;
  do {
    count = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT | MSG_TRUNC);
    // ECONNRESET says that the other side exited with messages unread. Its own last messages can still be received.
  } while (count < 0 && errno == ECONNRESET);
  return count > static_cast<ssize_t>(into.size()) ? 0 : count;
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

static_assert(std::is_trivially_copyable_v<Order> && std::is_trivially_copyable_v<News>, "they are sent as they are");

bool Line::send(const Order& order, const std::string& environment) const {
  std::string bytes(reinterpret_cast<const char*>(&order), sizeof order);
  return send_bytes(fd(), bytes += environment, MSG_DONTWAIT);
}

bool Line::send(const News& news) const { return send_bytes(fd(), bytes_of(news), MSG_DONTWAIT); }

void Line::send_last(const News& news) const {
  constexpr int most_attempts = 100;
  for (int attempts = 1; !send_bytes(fd(), bytes_of(news), 0); ++attempts) {
    const bool may_pass = errno == ENOBUFS || errno == ENOMEM;
    if (!may_pass || attempts == most_attempts) {
      ::shutdown(fd(), SHUT_RDWR);
      return;
    }
    ::poll(nullptr, 0, 1);
  }
}

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
