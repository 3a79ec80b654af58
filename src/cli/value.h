#pragma once

#include <string>
#include <string_view>

#include "base/duration.h"
#include "base/exit_code.h"

namespace rlock::cli {

/// One value as it was given, and where, so that an error can name the place.
struct Value {
  std::string text;
  std::string origin;  // "--ttl", "RLOCK_TIMEOUT" or "/etc/rlock.conf:3: ttl"
  ExitCode fault = ExitCode::usage;

  [[noreturn]] void refuse(std::string_view why) const;
  Milliseconds duration() const;
  Milliseconds duration(Milliseconds low, Milliseconds high, std::string_view hint = {}) const;
  long long number(long long low, long long high) const;
  /// yes or no.
  bool flag() const;
  /// Any bytes, but not without end.
  const std::string& words() const;
};

}  // namespace rlock::cli
