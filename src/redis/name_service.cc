#include "redis/name_service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

namespace rlock::redis {
namespace {

/// The part of our environment that getent gets: what a look-up depends on, and none of our secrets.
std::vector<std::string> environment_of_getent() {
  std::vector<std::string> kept;
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES"}) {
    if (const char* value = ::getenv(name))
      kept.push_back(fmt::format("{}={}", name, value));
  }
  return kept;
}

/// Returns only when there is no getent that can be executed.
void become_getent(std::string host, int out) {
  std::string program = "getent";
  std::string database = "ahosts";
  std::array<char*, 4> argv{program.data(), database.data(), host.data(), nullptr};
  auto environment = environment_of_getent();
  std::vector<char*> envp;
  for (auto& variable : environment) envp.push_back(variable.data());
  envp.push_back(nullptr);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDERR_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::execvpe("getent", argv.data(), envp.data());
  ::execve("/usr/bin/getent", argv.data(), envp.data());  // a crontab's PATH may lack it
}

std::string resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error == EAI_NONAME) {  // to AI_ADDRCONFIG a machine with nothing but loopback has no addresses
    hints.ai_flags = 0;
    error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  }
  if (error != 0)
    return fmt::format("{}{}\n", error_word, error);
  std::string lines;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    std::array<char, NI_MAXHOST> text;
    if (::getnameinfo(a->ai_addr, a->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      lines.append(text.data()).append("\n");
  }
  return lines;
}

}  // namespace

void ask(NameService service, const std::string& host, int out) {
  if (service == NameService::machine)
    become_getent(host, out);
  const std::string lines = resolve(host);
  const ssize_t written = ::write(out, lines.data(), lines.size());
  ::_exit(written < 0 ? 1 : 0);
}

}  // namespace rlock::redis
