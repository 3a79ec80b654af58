#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lock/answer.h"
#include "run/plan.h"
#include "run/scheduling.h"

namespace rlock::run {

/// The command's process, from its start until exec has succeeded or failed. It is made without copying the caller's
/// memory, as vfork(2) does it, but the caller goes on at once: exec may hang, as on a network file system, and the
/// caller has deadlines to keep meanwhile. Until then the process uses memory of this object, which must live as long.
class Child {
 public:
  /// Prepares all that can be prepared before the lock is granted. The command will be scheduled as the caller is now.
  explicit Child(const Command& command);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Starts the program as execvp(3) does, in a process group of its own, which gets the terminal if it is
  /// `foreground`, and with an empty signal mask. `variables` are added to its environment. The kernel sends it SIGKILL
  /// when its parent dies, unless exec gives it privileges (set-user-ID). Returns its PID, or -1 with errno set. To be
  /// called once, with all signals blocked.
  pid_t start(std::string_view variables, bool foreground);

  /// To be asked when the process has ended: the errno of the exec that failed, or 0 if the program was started (or if
  /// an emulator made us copy our memory: the process then ends with 127, and cannot say why).
  int exec_error() const { return exec_error_; }

 private:
  static int run(void* child);
  int become() const;

  std::string file_;
  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
  std::vector<char*> argv_;
  std::vector<char*> envp_;
  std::size_t stack_size_;
  std::unique_ptr<char[]> stack_;
  bool foreground_ = false;
  bool ignore_sigchld_;
  pid_t parent_ = 0;
  Scheduling scheduling_;
  volatile int exec_error_ = 0;
};

/// The file that execvp(3) would execute. Throws Error{not_found} or Error{not_executable} for a command that it would
/// refuse, so that the user hears of it before the lock is taken.
std::string find_command(const std::string& command);

/// The variables that tell the command about its lock: NAME=value strings, each ended by a NUL.
std::string lock_variables(const Plan& plan, const lock::Granted& grant);

}  // namespace rlock::run
