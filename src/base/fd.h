#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace rlock {

/// Owns one file descriptor and closes it. Everything rlock opens is close-on-exec from its creation.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(number_, other.number_);
    other.reset();
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset();
  /// Gives up ownership: the caller closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

/// Both ends of a connection that carries whole messages in order (SOCK_SEQPACKET), and reports an end of file when the
/// other end is closed. They are close-on-exec. Throws Error{os}.
std::pair<Fd, Fd> make_socket_pair();

/// Occupies whichever of 0, 1 and 2 is closed, so that no socket of ours can land there and receive somebody's output.
/// Using such a descriptor still fails with EBADF, and a command started later finds it closed. Throws Error{os}.
void ensure_standard_descriptors();

/// Writes all of the text, however many calls that takes. Throws Error{os} that begins with `what`.
void write_all(int fd, std::string_view text, const std::string& what);

}  // namespace rlock
