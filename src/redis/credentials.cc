#include "redis/credentials.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace rlock::redis {

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
  const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
  if (count < 0)
    throw fail(::strerror(errno));
  std::string_view line{buffer.data(), static_cast<std::size_t>(count)};
  line = line.substr(0, line.find('\n'));
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  if (line.size() == buffer.size())
    throw fail("its first line is too long for a password");
  if (line.empty())
    throw fail("its first line is empty");
  if (line.find('\0') != std::string_view::npos)
    throw fail("it is not a text file");
  return std::string{line};
}

}  // namespace rlock::redis
