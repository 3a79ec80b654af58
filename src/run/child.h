#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rlock::run {

struct Child {
  pid_t pid = -1;      // also its process group; -1 when it could not be made
  int fork_error = 0;  // errno
  int exec_error = 0;  // errno; the child has been reaped
};

struct ChildOptions {
  bool foreground = false;      // its group is given the terminal
  bool ignore_sigchld = false;  // as our own parent had it
};

/// Starts the program in `file`, or if that cannot be, argv[0] as execvp(3) searches it, in a process group of its own,
/// with an empty signal mask and SIGKILL when its parent dies. Returns once exec has succeeded or failed.
Child start_child(const std::string& file,
                  const std::vector<std::string>& argv,
                  const std::vector<std::string>& environment,
                  ChildOptions options);

/// The file that execvp(3) would execute. Throws Error{not_found} or Error{not_executable} for a command that it would
/// refuse: told before the lock is taken.
std::string find_command(const std::string& command);

}  // namespace rlock::run
