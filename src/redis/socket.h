#pragma once

#include <span>
#include <string_view>

#include "base/fd.h"
#include "redis/resolve.h"

namespace rlock::redis {

/// A non-blocking stream to one address.
class Socket {
 public:
  /// Begins to connect. Throws Error{os} when no socket is to be had, Error{unavailable} when it is refused at once.
  explicit Socket(const SocketAddress& address);

  int fd() const { return fd_.get(); }

  /// Whether the connection stands; throws Error{unavailable} when it was refused.
  bool is_connected() const;

  /// Whether there is something to read: bytes, or the end of the stream.
  bool is_readable() const;

  /// How many bytes passed; 0 when it would block. Throws Error{unavailable} when the stream is broken or ended.
  std::size_t write(std::string_view bytes);
  std::size_t read(std::span<char> into);

 private:
  Fd fd_;
};

}  // namespace rlock::redis
