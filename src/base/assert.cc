#include "base/assert.h"

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace rlock {
namespace {

iovec part(const char* text) { return {const_cast<char*>(text), std::strlen(text)}; }

/// A reader that has stopped reading must not keep us from ending.
void tell(const char* invariant, const char* file, int number) {
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) != 1)
    return;
  std::array<char, 16> line{};
  std::to_chars(line.data(), line.data() + line.size() - 1, number);
  const std::array parts{part("rlock: "),
                         part(file),
                         part(":"),
                         part(line.data()),
                         part(": this must always hold: "),
                         part(invariant),
                         part("; please report it\n")};
  [[maybe_unused]] const ssize_t written = ::writev(STDERR_FILENO, parts.data(), parts.size());
}

}  // namespace

void always(bool holds, const char* invariant, const char* file, int line) {
  if (holds)
    return;
  tell(invariant, file, line);
  std::abort();
}

}  // namespace rlock
