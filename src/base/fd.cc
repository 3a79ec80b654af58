#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/error.h"

namespace rlock {

void Fd::reset() {
  if (number_ >= 0)
    ::close(number_);
  number_ = -1;
}

std::pair<Fd, Fd> make_socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) < 0)
    throw os_error("socketpair", errno);
  return {Fd{ends[0]}, Fd{ends[1]}};
}

void ensure_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0)
      continue;
    // open() returns the lowest free number, which is fd. The access mode is the wrong one, so that use fails (EBADF).
    const int direction = fd == 0 ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", direction | O_CLOEXEC) < 0)
      throw os_error("cannot open /dev/null", errno);
  }
}

void write_all(int fd, std::string_view text, const std::string& what) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EAGAIN) {  // whoever shares it with us wants it so
      pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&writable, 1, -1);
    } else if (count < 0 && errno != EINTR) {
      throw os_error(what, errno);
    }
    if (count > 0)
      text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace rlock
