#pragma once

#include <stdexcept>
#include <string>

#include "base/exit_code.h"

namespace rlock {

/// The one failure type: what to tell the user, and the status to exit with. Expected outcomes (busy, lost, not the
/// holder) are return values and never thrown. Caught in main, and where an attempt may be repeated.
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
