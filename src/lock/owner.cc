#include "lock/owner.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "base/escape.h"
#include "base/masking.h"
#include "base/word.h"

namespace rlock::lock {
namespace {

constexpr std::size_t longest_command = 200;
constexpr char leaves = '-';  // after the PID
constexpr char holds_for_another = '+';

/// It does not ask the user database, which may be a network service.
std::string user_name() {
  for (const char* variable : {"LOGNAME", "USER"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0')
      return std::string{value}.substr(0, 64);
  }
  return ::geteuid() == 0 ? "root" : std::to_string(::geteuid());  // as in cron jobs and containers
}

/// The command without its passwords, since others can read it on Redis for a month.
std::string summarise(const std::vector<std::string>& command) {
  std::string line = mask_arguments(command);
  if (line.size() > longest_command)
    line = line.substr(0, longest_command) + "...";
  return line;
}

/// Whether it has ended and nobody has noticed, as in a container whose first process reaps no orphans.
bool is_zombie(long long pid) {
  std::ifstream file{fmt::format("/proc/{}/stat", pid)};
  std::string text;
  std::getline(file, text, '\0');
  const auto state = text.rfind(") ");
  return state != std::string::npos && text.compare(state + 2, 1, "Z") == 0;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) < 0)
    return "?";
  return name.data();
}

bool is_gone(const Owner& owner) {
  if (!owner.stays || owner.pid <= 0 || owner.host != host_name())
    return false;
  return (::kill(owner.pid, 0) < 0 && errno == ESRCH) || is_zombie(owner.pid);
}

std::string Owner::encode() const {
  const std::string suffix = !stays ? std::string{leaves} : for_another ? std::string{holds_for_another} : "";
  return fmt::format("{} {} {} {}{} {} {}",
                     percent_encode(holder),
                     percent_encode(host),
                     percent_encode(user),
                     pid,
                     suffix,
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
  owner.for_another = pid.ends_with(holds_for_another);
  return owner;
}

Owner describe_self(std::string holder, std::string note, const std::vector<std::string>& command) {
  Owner self{.holder = std::move(holder),
             .host = host_name(),
             .user = user_name(),
             .pid = ::getpid(),
             .command = summarise(command),
             .note = std::move(note)};
  if (self.holder.empty())
    self.holder = self.user + "@" + self.host;
  return self;
}

}  // namespace rlock::lock
