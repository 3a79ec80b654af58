#pragma once

#include <span>
#include <string_view>

#include "base/fd.h"
#include "redis/resolve.h"

namespace rlock::redis {

/// A non-blocking stream to one address.
class Socket {
 public:
  /// Begins to connect. Throws Error{os} if no socket can be made, Error{unavailable} if it is refused at once.
  explicit Socket(const SocketAddress& address);

  int fd() const { return fd_.get(); }

  /// Whether the connection is established; throws Error{unavailable} if it was refused.
  bool is_connected() const;

  /// Whether there is something to read: bytes, or the end of the stream.
  bool is_readable() const;

  /// How many bytes passed; 0 if it would block. Throws Error{unavailable} if the stream is broken or has ended.
  std::size_t write(std::string_view bytes);
  std::size_t read(std::span<char> into);

 private:
  Fd fd_;
};

}  // namespace rlock::redis
