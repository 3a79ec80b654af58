#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"

namespace rlock::run {

/// What becomes of the processes that a command leaves behind when it exits by itself.
enum class AtEnd { leave, wait, kill };

/// What is known of the command before the lock is taken.
struct Command {
  std::string file;  // that argv[0] was found to be
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=value; the start order adds to it
  int first_signal = 0;                  // to a command that must stop
  Milliseconds kill_after{};             // from that to KILL
  std::optional<Milliseconds> max_runtime;
  AtEnd at_end = AtEnd::leave;
  bool ignore_sigchld = false;  // inherited by rlock: the command inherits it too
};

}  // namespace rlock::run
