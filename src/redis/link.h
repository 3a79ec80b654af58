#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "redis/address.h"

namespace rlock::redis {

/// A byte stream to one server. It hides how one is made: it looks up the name, tries its addresses one after the
/// other, and negotiates TLS. Passive: the caller polls interest() until deadline(). Every failure throws an Error,
/// after which the link is of no use.
class Link {
 public:
  /// The message of an Error when the server has ended the stream.
  static constexpr std::string_view closed = "the server closed the connection";

  /// `deadline` is used to share out the time among the server's addresses; the caller enforces it.
  Link(const Endpoint& endpoint, const std::optional<TlsOptions>& tls, Deadline deadline);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  /// Continues opening the link; true once bytes can pass.
  bool open();
  /// When to call open() at the latest.
  Deadline deadline() const;
  /// The message for a link that is not open in time: it says what took too long.
  std::string what_is_late() const;

  pollfd interest(bool has_to_write) const;
  /// Whether there is something to read: bytes, or the end of the stream.
  bool is_readable() const;
  /// How many bytes passed; 0 when it would block.
  std::size_t write(std::string_view bytes);
  std::size_t read(std::span<char> into);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

/// The libraries for whose security fixes rlock must be built anew where they are linked into it: one a line, with its
/// version.
std::string library_versions();

}  // namespace rlock::redis
