#include "lock/owner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "base/escape.h"
#include "base/word.h"

namespace rlock::lock {
namespace {

constexpr std::size_t longest_command = 200;
constexpr char leaves = '-';  // after the PID

/// It does not ask the user database, which may be a network service.
std::string user_name() {
  for (const char* variable : {"LOGNAME", "USER"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0')
      return std::string{value}.substr(0, 64);
  }
  return ::geteuid() == 0 ? "root" : std::to_string(::geteuid());  // as in cron jobs and containers
}

std::string join(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty())
      line += ' ';
    line += word;
    if (line.size() > longest_command)
      return line.substr(0, longest_command) + "...";
  }
  return line;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) < 0)
    return "?";
  return name.data();
}

std::string Owner::encode() const {
  return fmt::format("{} {} {} {}{} {} {}",
                     percent_encode(holder),
                     percent_encode(host),
                     percent_encode(user),
                     pid,
                     stays ? "" : std::string{leaves},
                     percent_encode(command),
                     percent_encode(note));
}

Owner Owner::decode(std::string_view text) {
  Owner owner;
  std::string pid;
  for (std::string* field : {&owner.holder, &owner.host, &owner.user, &pid, &owner.command, &owner.note}) {
    *field = percent_decode(take_word(text)).value_or("?");
  }
  std::from_chars(pid.data(), pid.data() + pid.size(), owner.pid);
  owner.stays = !pid.ends_with(leaves);
  return owner;
}

Owner describe_self(std::string holder, std::string note, const std::vector<std::string>& command) {
  Owner self{.holder = std::move(holder),
             .host = host_name(),
             .user = user_name(),
             .pid = ::getpid(),
             .command = join(command),
             .note = std::move(note)};
  if (self.holder.empty())
    self.holder = self.user + "@" + self.host;
  return self;
}

}  // namespace rlock::lock
