#include "redis/resolve.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace rlock::redis {
namespace {

SocketAddress unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  SocketAddress out;
  std::memcpy(&out.storage, &address, sizeof address);
  out.length = sizeof address;
  return out;
}

std::optional<SocketAddress> numeric_address(const std::string& host, std::uint16_t port) {
  SocketAddress out;
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&out.storage, &v4, sizeof v4);
    out.length = sizeof v4;
    return out;
  }
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&out.storage, &v6, sizeof v6);
    out.length = sizeof v6;
    return out;
  }
  return std::nullopt;
}

/// The child's whole life: one int, the error of getaddrinfo, then the addresses.
void look_up(int out, const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error == EAI_NONAME) {  // AI_ADDRCONFIG does not count loopback addresses as configured
    hints.ai_flags = 0;
    error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  }
  std::string message(reinterpret_cast<const char*>(&error), sizeof error);
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, a->ai_addr, a->ai_addrlen);
    address.length = a->ai_addrlen;
    message.append(reinterpret_cast<const char*>(&address), sizeof address);
  }
  [[maybe_unused]] const ssize_t written = ::write(out, message.data(), message.size());
}

}  // namespace

Lookup::Lookup(const Endpoint& endpoint) : host_(endpoint.host), port_(endpoint.port) {
  if (endpoint.is_unix()) {
    found_.push_back(unix_address(endpoint.path));
  } else if (const auto numeric = numeric_address(host_, port_)) {
    found_.push_back(*numeric);
  } else {
    start_child();
  }
}

void Lookup::start_child() {
  int ends[2];
  if (::pipe2(static_cast<int*>(ends), O_CLOEXEC | O_NONBLOCK) < 0)
    throw os_error("pipe", errno);
  pipe_ = Fd{ends[0]};
  const Fd write_end{ends[1]};
  child_ = ::fork();
  if (child_ < 0)
    throw os_error("cannot start the name look-up", errno);
  if (child_ > 0)
    return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  look_up(write_end.get(), host_, port_);
  ::_exit(0);
}

Lookup::~Lookup() {
  if (child_ <= 0)
    return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<std::vector<SocketAddress>> Lookup::advance() {
  if (!found_.empty())
    return found_;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = ::read(pipe_.get(), static_cast<char*>(buffer), sizeof buffer)) > 0) {
    received_.append(static_cast<const char*>(buffer), static_cast<std::size_t>(count));
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return std::nullopt;
  int error = EAI_FAIL;  // the child died without a word
  if (received_.size() >= sizeof error)
    std::memcpy(&error, received_.data(), sizeof error);
  if (error != 0) {
    throw Error{ExitCode::unavailable, fmt::format("cannot look up '{}': {}", host_, ::gai_strerror(error))};
  }
  for (std::size_t at = sizeof error; at + sizeof(SocketAddress) <= received_.size(); at += sizeof(SocketAddress)) {
    std::memcpy(&found_.emplace_back(), received_.data() + at, sizeof(SocketAddress));
  }
  if (found_.empty())
    throw Error{ExitCode::unavailable, fmt::format("'{}' has no address", host_)};
  return found_;
}

}  // namespace rlock::redis
