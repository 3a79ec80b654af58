#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rlock::run {

/// What start_child() made, or why it failed.
struct Child {
  pid_t pid = -1;      // also its process group; -1 when the command was not started
  int fork_error = 0;  // errno of vfork; 0 when that succeeded
  int exec_error = 0;  // errno of exec; the child has been reaped
};

struct ChildOptions {
  bool foreground = false;      // make its group the terminal's foreground group
  bool ignore_sigchld = false;  // start it with SIGCHLD ignored, as rlock itself was started
};

/// Starts the program in `file`, or else argv[0], searched as execvp(3) does, in a process group of its own and with an
/// empty signal mask. The kernel sends it SIGKILL when its parent dies, unless exec gives it privileges (set-user-ID).
/// Returns once exec has succeeded or failed.
Child start_child(const std::string& file,
                  const std::vector<std::string>& argv,
                  const std::vector<std::string>& environment,
                  ChildOptions options);

/// The file that execvp(3) would execute. Throws Error{not_found} or Error{not_executable} for a command that it would
/// refuse, so that the user hears of it before the lock is taken.
std::string find_command(const std::string& command);

}  // namespace rlock::run
