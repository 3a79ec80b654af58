#pragma once

namespace rlock {

/// Every exit status of rlock's own, as the man page's EXIT STATUS section lists them. Otherwise `run` exits with its
/// command's status, or with 128 + n if signal n ended the command.
enum class ExitCode : int {
  ok = 0,
  negative = 1,          // the answer is no: not the holder (renew, release), some free (status), a FAIL (check)
  usage = 64,            // an option, argument or combination that makes no sense
  unavailable = 69,      // Redis, or a majority, could not be reached or refused
  internal = 70,         // a defect of rlock, or one of its processes was killed
  os = 71,               // the operating system refused: fork, descriptors, memory
  conflict = 75,         // not acquired (or what --conflict-exit-code says)
  lost = 76,             // the lease was lost while the command ran, and the command was stopped
  no_permission = 77,    // authentication or permission refused by Redis
  config = 78,           // configuration file, password file, certificate or report file
  timeout = 124,         // stopped by --max-runtime
  not_executable = 126,  // command found but not executable
  not_found = 127,       // command not found
};

/// The status of a process that signal `number` ended, as shells report it.
constexpr ExitCode killed_by(int number) { return ExitCode{128 + number}; }

}  // namespace rlock
