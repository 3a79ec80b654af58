#include "base/log.h"

#include <unistd.h>

#include <string>

#include "base/escape.h"

namespace rlock {
namespace {

void write_line(std::string_view message, std::string_view text = {}) {
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
