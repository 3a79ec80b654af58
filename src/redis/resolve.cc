#include "redis/resolve.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace rlock::redis {
namespace {

constexpr std::size_t most_bytes = 65536;

/// What our resolver writes when it finds nothing, followed by the error number of getaddrinfo(3).
constexpr std::string_view error_word = "error ";

template <typename Address>
SocketAddress store(const Address& address) {
  SocketAddress out;
  std::memcpy(&out.storage, &address, sizeof address);
  out.length = sizeof address;
  return out;
}

SocketAddress unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  return store(address);
}

/// The number of the interface after the '%' of "fe80::1%eth0"; 0 for one that does not exist.
unsigned scope_of(const std::string& zone) {
  const unsigned index = ::if_nametoindex(zone.c_str());
  return index != 0 ? index : static_cast<unsigned>(std::strtoul(zone.c_str(), nullptr, 10));
}

std::optional<SocketAddress> numeric_address(const std::string& text, std::uint16_t port) {
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return store(v4);
  }
  const auto percent = text.find('%');
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET6, text.substr(0, percent).c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_scope_id = percent == std::string::npos ? 0 : scope_of(text.substr(percent + 1));
    return store(v6);
  }
  return std::nullopt;
}

bool is_same(const SocketAddress& a, const SocketAddress& b) {
  return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
}

/// The addresses at the beginnings of the lines, in their order and each only once: getent prints every address three
/// times, for stream, datagram and raw sockets.
std::vector<SocketAddress> addresses_in(std::string_view lines, std::uint16_t port) {
  std::vector<SocketAddress> found;
  for (std::size_t end = 0; (end = lines.find('\n')) != std::string_view::npos; lines.remove_prefix(end + 1)) {
    const std::string_view line = lines.substr(0, end);
    const auto address = numeric_address(std::string{line.substr(0, line.find(' '))}, port);
    const auto is_it = [&](const SocketAddress& other) { return is_same(other, *address); };
    if (address && std::none_of(found.begin(), found.end(), is_it))
      found.push_back(*address);
  }
  return found;
}

/// The error number that our own resolver wrote instead of addresses.
std::optional<int> error_in(const std::string& lines) {
  if (!lines.starts_with(error_word))
    return std::nullopt;
  return static_cast<int>(std::strtol(lines.c_str() + error_word.size(), nullptr, 10));
}

/// The part of our environment that getent gets: what a look-up depends on, and none of our secrets.
std::vector<std::string> environment_of_getent() {
  std::vector<std::string> kept;
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES"}) {
    if (const char* value = ::getenv(name))
      kept.push_back(fmt::format("{}={}", name, value));
  }
  return kept;
}

/// Returns only when there is no getent that can be executed.
void become_getent(std::string host, int out) {
  std::string program = "getent";
  std::string database = "ahosts";
  std::array<char*, 4> argv{program.data(), database.data(), host.data(), nullptr};
  auto environment = environment_of_getent();
  std::vector<char*> envp;
  for (auto& variable : environment) envp.push_back(variable.data());
  envp.push_back(nullptr);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDERR_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::execve("/usr/bin/getent", argv.data(), envp.data());  // first: PATH may name a folder that others can write
  ::execvpe("getent", argv.data(), envp.data());
}

std::string resolve_ourselves(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error == EAI_NONAME) {  // to AI_ADDRCONFIG a machine with nothing but loopback has no addresses
    hints.ai_flags = 0;
    error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  }
  if (error != 0)
    return fmt::format("{}{}\n", error_word, error);
  std::string lines;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    std::array<char, NI_MAXHOST> text;
    if (::getnameinfo(a->ai_addr, a->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      lines.append(text.data()).append("\n");
  }
  return lines;
}

}  // namespace

Lookup::Lookup(const Endpoint& endpoint) : host_(endpoint.host), port_(endpoint.port) {
  if (endpoint.is_unix()) {
    found_.push_back(unix_address(endpoint.path));
  } else if (const auto numeric = numeric_address(host_, port_)) {
    found_.push_back(*numeric);
  } else {
    services_ = services_for(host_);
    ask_next();
  }
}

Lookup::~Lookup() { end_child(); }

/// The name services in the order in which they are asked. "localhost" is in /etc/hosts, which we can read without
/// another program. getent would take a name that begins with '-' for an option, and no machine has such a name.
std::vector<Lookup::NameService> Lookup::services_for(const std::string& host) {
  if (host.starts_with('-'))
    return {NameService::ourselves};
  if (host == "localhost")
    return {NameService::ourselves, NameService::machine};
  return {NameService::machine, NameService::ourselves};
}

/// What the child does: it writes the addresses of `host` to `out`, each at the beginning of a line, as getent does,
/// and exits. If there is no getent our own resolver answers in its place.
void Lookup::ask(NameService service, const std::string& host, int out) {
  if (service == NameService::machine)
    become_getent(host, out);
  const std::string lines = resolve_ourselves(host);
  const ssize_t written = ::write(out, lines.data(), lines.size());
  ::_exit(written < 0 ? 1 : 0);
}

void Lookup::ask_next() {
  int ends[2];
  if (::pipe2(static_cast<int*>(ends), O_CLOEXEC) < 0)
    throw os_error("pipe", errno);
  pipe_ = Fd{ends[0]};
  const Fd write_end{ends[1]};
  if (::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK) < 0)
    throw os_error("pipe", errno);
  const NameService service = services_.at(asked_++);
  const pid_t parent = ::getpid();
  end_child();
  child_ = ::fork();
  if (child_ < 0)
    throw os_error("cannot start the name look-up", errno);
  if (child_ > 0)
    return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent)
    ::_exit(0);
  ask(service, host_, write_end.get());
}

void Lookup::end_child() {
  const pid_t child = std::exchange(child_, -1);
  if (child <= 0 || ::waitpid(child, nullptr, WNOHANG) != 0)
    return;  // it has ended, and its number may be another process's
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// True when the child has closed its end of the pipe, or has written more than the addresses of any real name.
bool Lookup::read_lines() {
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while (lines_.size() < most_bytes && (count = ::read(pipe_.get(), buffer.data(), buffer.size())) > 0) {
    lines_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return count >= 0 || (errno != EAGAIN && errno != EINTR);
}

std::optional<std::vector<SocketAddress>> Lookup::advance() {
  if (!found_.empty())
    return found_;
  if (!read_lines())
    return std::nullopt;
  found_ = addresses_in(lines_, port_);
  if (!found_.empty())
    return found_;
  const auto error = error_in(lines_);
  if (!error) {
    error_ = EAI_NONAME;  // getent found nothing
  } else if (asked_ == 1 || *error == EAI_AGAIN) {
    error_ = *error;  // getent does not tell a failing name server from an unknown name
  }
  const bool without_getent = error && services_[asked_ - 1] == NameService::machine;
  if (without_getent || asked_ == services_.size())
    throw Error{ExitCode::unavailable, fmt::format("cannot look up '{}': {}", host_, ::gai_strerror(error_))};
  lines_.clear();
  ask_next();
  return std::nullopt;
}

}  // namespace rlock::redis
