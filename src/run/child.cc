#include "run/child.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/word.h"
#include "run/terminal.h"

/// The address sanitizer knows nothing of a stack that we made.
#define WITHOUT_SANITIZER __attribute__((no_sanitize("address")))

namespace rlock::run {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));  // NOLINT: execve's signature
  out.push_back(nullptr);
  return out;
}

/// execvpe(3) puts a path and, for a script without an interpreter line, all arguments on the stack.
std::size_t stack_for(std::size_t arguments) {
  constexpr std::size_t enough_for_calls = 65536;
  constexpr std::size_t alignment = 16;
  const std::size_t size = enough_for_calls + (arguments + 8) * sizeof(char*);
  return size / alignment * alignment;
}

bool is_regular(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

/// Adds `additions`, as lock_variables() writes them, replacing variables of the same name. RLOCK_HELD alone is not
/// replaced but gets one more entry: it may be longer than a message of the guard.
std::vector<std::string> merge_environment(std::vector<std::string> environment, std::string_view additions) {
  while (!additions.empty()) {
    std::string entry{take_word(additions, '\0')};
    const std::string name = entry.substr(0, entry.find('=') + 1);
    std::erase_if(environment, [&](const std::string& old) {
      if (!old.starts_with(name))
        return false;
      if (name == "RLOCK_HELD=")
        entry = name + lock::held_with(old.substr(name.size()), entry.substr(name.size()));
      return true;
    });
    environment.push_back(std::move(entry));
  }
  return environment;
}

}  // namespace

Child::Child(const Command& command)
    : file_(command.file),
      arguments_(command.argv),
      environment_(command.environment),
      argv_(pointers(arguments_)),
      stack_size_(stack_for(arguments_.size())),
      stack_(new char[stack_size_]),
      ignore_sigchld_(command.ignore_sigchld) {}

pid_t Child::start(std::string_view variables, bool foreground) {
  environment_ = merge_environment(std::move(environment_), variables);
  envp_ = pointers(environment_);
  foreground_ = foreground;
  parent_ = ::getpid();
  pid_t pid = ::clone(run, stack_.get() + stack_size_, CLONE_VM | SIGCHLD, this);
  if (pid < 0 && errno == EINVAL)  // from an emulator such as qemu-user, which can only copy our memory
    pid = ::clone(run, stack_.get() + stack_size_, SIGCHLD, this);
  if (pid > 0)
    ::setpgid(pid, pid);  // the child does the same: whoever is first, we may signal the group from here on
  return pid;
}

/// The child's main function. It shares our memory until exec, errno included, so it makes only async-signal-safe
/// calls, changes none of our variables but one, and meanwhile nothing that matters is decided by errno.
WITHOUT_SANITIZER int Child::run(void* child) {
  auto* self = static_cast<Child*>(child);
  self->exec_error_ = self->become();
  ::_exit(127);
}

/// Returns errno when exec fails.
WITHOUT_SANITIZER int Child::become() const {
  ::setpgid(0, 0);
  scheduling_.restore();
  if (foreground_)
    terminal::give_to(::getpid());  // SIGTTOU is still blocked
  if (ignore_sigchld_)
    ::signal(SIGCHLD, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent_)
    ::_exit(127);  // the guard died before the prctl above took effect
  ::execve(file_.c_str(), argv_.data(), envp_.data());
  ::execvpe(argv_[0], argv_.data(), envp_.data());  // the file is gone, or is a script without an interpreter line
  return errno;
}

namespace {

/// Whether only a shell knows the command.
bool is_builtin(std::string_view command) {
  constexpr std::string_view known =
      " alias cd eval exec exit export for if read return set shift source trap ulimit umask unset wait while ";
  return known.find(fmt::format(" {} ", command)) != std::string_view::npos;
}

/// The variable that a shell would set, as in `FOO=1 make`; empty where the word is no assignment.
std::string assigned_variable(const std::string& word) {
  const auto is_in_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  const auto end = std::find_if_not(word.begin(), word.end(), is_in_name);
  const bool is_assignment = end != word.begin() && end != word.end() && *end == '=';
  return is_assignment ? std::string{word.begin(), end} : "";
}

Error not_found(const std::string& command, bool searched) {
  if (const std::string variable = assigned_variable(command); !variable.empty())  // the value may be a password
    return {ExitCode::not_found,
            fmt::format("{0}=...: command not found; to set a variable write -- env {0}=... COMMAND", variable)};
  if (std::getenv(fmt::format("BASH_FUNC_{}%%", command).c_str()) != nullptr)
    return {
        ExitCode::not_found,
        fmt::format("{0}: command not found; for a function of the shell, write -- bash -c '{0} \"$@\"' {0}", command)};
  if (const std::string beside = "./" + command; searched && is_regular(beside))
    return {ExitCode::not_found, fmt::format("{}: command not found; did you mean {}?", command, beside)};
  const bool is_line = command.find_first_of(" ;|&<>") != std::string::npos || is_builtin(command);
  const std::string_view advice = is_line                    ? "; for a shell, write -- sh -c '...'"
                                  : command.starts_with('-') ? "; options stand before the --"
                                  : searched                 ? "; it is in no folder of PATH"
                                                             : "";
  return {ExitCode::not_found, fmt::format("{}: command not found{}", command, advice)};
}

}  // namespace

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
    std::string file = !searched || folder.empty() ? command : fmt::format("{}/{}", folder, command);
    const bool may_execute = ::access(file.c_str(), X_OK) == 0;
    if (may_execute && is_regular(file))
      return file;
    found = found || may_execute || (errno == EACCES && ::access(file.c_str(), F_OK) == 0);
    if (!searched)
      break;
    begin = end + 1;
  }
  if (found) {
    std::error_code unreadable;
    const bool is_folder = !searched && std::filesystem::is_directory(command, unreadable);
    throw Error{ExitCode::not_executable,
                fmt::format("{}: {}", command, is_folder ? "is a directory" : "found but not executable")};
  }
  throw not_found(command, searched);
}

std::string lock_variables(const Plan& plan, const lock::Granted& grant) {
  std::string out;
  const auto add = [&out](std::string_view name, std::string_view value) {
    out += fmt::format("{}={}", name, value);
    out += '\0';
  };
  add("RLOCK_KEY", plan.name.text());
  add("RLOCK_TOKEN", plan.claim.token.text());
  add("RLOCK_FENCE", grant.fence.text());
  add("RLOCK_TTL_MS", std::to_string(plan.lease.ttl.count()));
  if (plan.claim.capacity.value > 1)
    add("RLOCK_SLOT", std::to_string(grant.slot));
  add("RLOCK_HELD", lock::held_entry(plan.name.text(), plan.claim.token));
  return out;
}

}  // namespace rlock::run
