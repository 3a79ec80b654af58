#include "run/child.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "run/terminal.h"

namespace rlock::run {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));  // NOLINT: execve's signature
  out.push_back(nullptr);
  return out;
}

/// Turns the child into the command. The child shares our memory until exec, so this makes only async-signal-safe calls
/// and changes none of our variables. Returns errno when exec fails.
int become(const char* file, char* const* argv, char* const* environment, pid_t parent, ChildOptions options) {
  ::setpgid(0, 0);
  if (options.foreground)
    terminal::give_to(::getpid());  // SIGTTOU is still blocked
  if (options.ignore_sigchld)
    ::signal(SIGCHLD, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent)
    ::_exit(127);  // the guard died before the prctl above took effect
  ::execve(file, argv, environment);
  ::execvpe(argv[0], argv, environment);  // the file is gone, or is a script without an interpreter line
  return errno;
}

bool is_regular(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

Child start_child(const std::string& file,
                  const std::vector<std::string>& argv,
                  const std::vector<std::string>& environment,
                  ChildOptions options) {
  const auto argv_pointers = pointers(argv);
  const auto environment_pointers = pointers(environment);
  const pid_t parent = ::getpid();
  volatile int exec_error = 0;
  // vfork copies none of the guard's pages, and the guard resumes only when exec has succeeded or failed, so that the
  // error needs no pipe.
  const pid_t pid = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (pid == 0) {
    exec_error = become(file.c_str(), argv_pointers.data(), environment_pointers.data(), parent, options);
    ::_exit(127);
  }
  if (pid < 0)
    return {.fork_error = errno};
  if (exec_error == 0)
    return {.pid = pid};
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {.exec_error = exec_error};
}

std::string find_command(const std::string& command) {
  if (command.empty())
    throw Error{ExitCode::not_found, "the command is empty"};
  std::string_view path = "/bin:/usr/bin";  // what execvp(3) uses where PATH is not set
  if (const char* value = std::getenv("PATH"))
    path = value;
  const bool searched = command.find('/') == std::string::npos;
  bool found = false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string_view folder = path.substr(begin, end - begin);
    const std::string file = !searched || folder.empty() ? command : fmt::format("{}/{}", folder, command);
    const bool may_execute = ::access(file.c_str(), X_OK) == 0;
    if (may_execute && is_regular(file))
      return file;
    found = found || may_execute || (errno == EACCES && ::access(file.c_str(), F_OK) == 0);
    if (!searched)
      break;
    begin = end + 1;
  }
  if (found)
    throw Error{ExitCode::not_executable, fmt::format("{}: found but not executable", command)};
  throw Error{ExitCode::not_found, fmt::format("{}: command not found", command)};
}

}  // namespace rlock::run
