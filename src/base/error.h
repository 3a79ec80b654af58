#pragma once

#include <stdexcept>
#include <string>

#include "base/exit_code.h"

namespace rlock {

/// The one failure type: what to tell the user, and the status to exit with. Expected outcomes (busy, lost, not the
/// holder) are return values and never thrown. Caught in main, and where an attempt may be repeated.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// A failed system call: `what` and the text of `error_number`.
Error os_error(const std::string& what, int error_number);

}  // namespace rlock
