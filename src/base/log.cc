#include "base/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/clock.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/timestamp.h"

namespace rlock {
namespace {

constexpr int patience_ms = 100;

/// PIPE_BUF: a pipe that poll(2) calls writable takes this much without blocking.
constexpr std::size_t longest_line = 4096;

/// Shortens the text to at most `limit` bytes, without splitting a character.
std::string cut(std::string text, std::size_t limit) {
  if (text.size() <= limit)
    return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
  return text.substr(0, limit) + "...";
}

/// Opens stderr once more if it is a pipe or a terminal, so that no write blocks, whoever else fills it. O_NONBLOCK on
/// stderr itself would change it for every process that shares it. Returns nothing for anything else: a file never
/// blocks, and its position is shared.
Fd reopen_stderr() {
  struct stat info {};
  if (::fstat(STDERR_FILENO, &info) < 0 || (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode)))
    return {};
  return Fd{::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
}

/// Like write(2), but never blocks a socket either.
ssize_t write_some(int fd, std::string_view text) {
  const ssize_t count = ::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return count < 0 && errno == ENOTSOCK ? ::write(fd, text.data(), text.size()) : count;
}

/// A reader that has stopped reading (a pager, a terminal after Ctrl-S) must not stop us: there may be a lease to keep.
/// One that was waited for in vain is waited for again only once it has read on.
void write_to_stderr(std::string_view text) {
  static bool reads = true;
  const int patience = reads ? patience_ms : 0;
  const auto give_up = BootClock::now() + std::chrono::milliseconds{patience};
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  reads = ::poll(&out, 1, patience) != 0;
  if (!reads)
    return;
  const Fd reopened = reopen_stderr();
  const int fd = reopened ? reopened.get() : STDERR_FILENO;
  while (!text.empty()) {
    const ssize_t count = write_some(fd, text);
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (count == 0 || errno != EAGAIN)
      return;  // there is nobody left to tell when stderr itself fails
    reads = BootClock::now() < give_up;
    if (!reads)
      return;
    ::poll(nullptr, 0, 1);  // a terminal takes one writer at a time
  }
}

/// In the machine's time zone, like its other logs.
std::string time_of_day() {
  const WallTime now = wall_now();
  return fmt::format("{}.{:03}", format_parts(local_parts(now), "%H:%M:%S"), now.time_since_epoch().count() % 1000);
}

void write_line(std::string_view message, std::string_view text = {}) {
  constexpr std::size_t frame = 16;  // at most what is put around a message
  const std::string line = "rlock: " + cut(printable(message), longest_line - frame) + "\n" + std::string{text};
  write_to_stderr(line);
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
    write_line(fmt::format("{} {}", time_of_day(), message));
}

}  // namespace rlock
