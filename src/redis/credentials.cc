#include "redis/credentials.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace rlock::redis {
namespace {

/// Reads the first line into `buffer`, or as much of it as fits. A pipe may bring it in parts. Returns nothing, and
/// sets errno, if it cannot be read.
std::optional<std::string_view> read_line(const Fd& fd, std::span<char> buffer) {
  std::string_view text;
  while (text.size() < buffer.size() && text.find('\n') == std::string_view::npos) {
    const ssize_t count = ::read(fd.get(), buffer.data() + text.size(), buffer.size() - text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return std::nullopt;
    if (count == 0)
      break;
    text = {buffer.data(), text.size() + static_cast<std::size_t>(count)};
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::optional<std::string> Credentials::current_password() const {
  if (password_file.empty())
    return password;
  const auto fail = [this](std::string_view why) {
    return Error{ExitCode::config, fmt::format("password file {}: {}", password_file, why)};
  };
  const Fd fd{::open(password_file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!fd)
    throw fail(::strerror(errno));
  std::array<char, 4096> buffer;
  const auto read = read_line(fd, buffer);
  if (!read)
    throw fail(::strerror(errno));
  std::string_view line = *read;
  if (line.size() == buffer.size())
    throw fail("its first line is too long for a password");
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  if (line.empty())
    throw fail("its first line is empty");
  if (line.find('\0') != std::string_view::npos)
    throw fail("it is not a text file");
  return std::string{line};
}

}  // namespace rlock::redis
