#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "base/error.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "lock/taker.h"

namespace rlock::run {

/// What happens to the command when the lock is lost.
enum class OnLost { kill, warn };

/// What happens to the processes that a command leaves behind when it exits by itself.
enum class AtEnd { leave, wait, kill };

/// The command and how to stop it, as far as that is known before the lock is taken.
struct Command {
  std::string file;  // the program that argv[0] was found to name
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=value; the start order adds to it
  int first_signal = 0;                  // sent to a command that must stop
  Milliseconds kill_after{};             // the time between that signal and KILL
  std::optional<Milliseconds> max_runtime;
  AtEnd at_end = AtEnd::leave;
  bool ignore_sigchld = false;  // rlock was started with SIGCHLD ignored, and the command inherits that
};

/// What `rlock run` was asked to do, after defaults and checks.
struct Plan {
  Command command;
  lock::LockName name;
  lock::Claim claim;
  std::optional<lock::Token> inherited;  // of an enclosing run that holds this lock, to re-enter it
  lock::LeaseTerms lease;
  Milliseconds max_lease{};
  lock::Patience patience;
  OnLost on_lost = OnLost::kill;
  ExitCode conflict = ExitCode::conflict;
};

}  // namespace rlock::run
