#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "redis/address.h"

namespace rlock::redis {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

/// Looks up the addresses of one endpoint, in the order in which they should be tried. A unix path or a numeric
/// address is known at once. A name is looked up by a child process, because neither getent(1) nor getaddrinfo(3) has a
/// timeout, and a dead name server must not outlast our deadline. It hides whom that child asks. Passive: the caller
/// polls fd(), which may change with each advance().
class Lookup {
 public:
  /// Throws Error{os} if the child cannot be started.
  explicit Lookup(const Endpoint& endpoint);
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  /// Kills the child if it still runs.
  ~Lookup();

  /// Readable when advance() has something to do; -1 if the answer is already known.
  int fd() const { return pipe_.get(); }

  /// The addresses once they are known, at least one. Throws Error{unavailable} for a name that has none.
  std::optional<std::vector<SocketAddress>> advance();

 private:
  /// The machine, through its getent(1), or the resolver that is linked into rlock. /etc/nsswitch.conf may name modules
  /// of another C library version, which a static program cannot load; getent belongs to the machine and can. Our own
  /// resolver knows a hosts file and DNS, and serves where there is no getent.
  enum class NameService { machine, ourselves };

  static std::vector<NameService> services_for(const std::string& host);
  [[noreturn]] static void ask(NameService service, const std::string& host, int out);
  void ask_next();
  void end_child();
  bool read_lines();

  std::string host_;
  std::uint16_t port_;
  std::vector<SocketAddress> found_;
  std::vector<NameService> services_;  // in the order in which they are asked
  std::size_t asked_ = 0;              // how many of them have been asked
  pid_t child_ = -1;
  Fd pipe_;
  std::string lines_;  // what the child has written
  int error_ = 0;      // of getaddrinfo
};

}  // namespace rlock::redis
