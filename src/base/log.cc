#include "base/log.h"

#include <poll.h>
#include <unistd.h>

#include <string>

#include "base/escape.h"

namespace rlock {
namespace {

constexpr int patience_ms = 100;

/// A reader that has stopped to read (a pager, a terminal after Ctrl-S) must not stop us: there may be a lease to keep.
bool is_writable() {
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, patience_ms) != 0;
}

void write_line(std::string_view message, std::string_view text = {}) {
  if (!is_writable())
    return;
  const std::string line = "rlock: " + printable(message) + "\n" + std::string{text};
  // Nobody is left to be told when stderr itself fails.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void Log::error(std::string_view message) const { write_line(message); }

void Log::usage(std::string_view message, std::string_view text) const { write_line(message, text); }

void Log::notice(std::string_view message) const {
  if (verbosity_ != Verbosity::quiet)
    write_line(message);
}

void Log::step(std::string_view message) const {
  if (verbosity_ == Verbosity::verbose)
    write_line(message);
}

}  // namespace rlock
