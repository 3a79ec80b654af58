#pragma once

#include <stdexcept>
#include <string>

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
  lost = 76,             // the lease was lost or the run evicted, and the command was stopped
  no_permission = 77,    // authentication or permission refused by Redis
  config = 78,           // configuration file, password file, certificate or report file
  timeout = 124,         // stopped by --max-runtime
  not_executable = 126,  // command found but not executable
  not_found = 127,       // command not found
};

/// The status of a process that signal `number` ended, as shells report it.
constexpr ExitCode killed_by(int number) { return ExitCode{128 + number}; }

/// The one failure type: what to tell the user, and the status to exit with. Expected outcomes (busy, lost, not the
/// holder) are return values and never thrown. Caught in main, where an attempt may be repeated, and where what one
/// server says must not end the rest.
class Error : public std::runtime_error {
 public:
  /// `lasting`: trying again is pointless.
  Error(ExitCode code, const std::string& message, bool lasting = false)
      : std::runtime_error(message), code_(code), lasting_(lasting) {}

  ExitCode code() const { return code_; }
  /// Whether it may pass by itself: a server that is unavailable often comes back, a wrong option stays wrong.
  bool may_pass() const { return code_ == ExitCode::unavailable && !lasting_; }
  /// The same failure, with its subject put before the message.
  Error about(const std::string& what_about) const { return {code_, what_about + ": " + what(), lasting_}; }

 private:
  ExitCode code_;
  bool lasting_;
};

/// A failed system call: `what` and the text of `error_number`.
Error os_error(const std::string& what, int error_number);

}  // namespace rlock
