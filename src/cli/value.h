#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/duration.h"
#include "base/exit_code.h"

namespace rlock::cli {

/// Those that are meant by a mistyped one, and offered by the completions.
constexpr std::array<std::string_view, 7> common_signals{"TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL"};

/// One value as it was given, and where, so that an error can name the place.
struct Value {
  std::string text;
  std::string origin;  // "--ttl", "RLOCK_TIMEOUT" or "/etc/rlock.conf:3: ttl"
  ExitCode fault = ExitCode::usage;
  int index = 0;  // where the option has words to choose from: which of them

  [[noreturn]] void refuse(std::string_view why) const;
  /// It is none of these words.
  [[noreturn]] void refuse_word(std::span<const std::string_view> words) const;
  Milliseconds duration() const;
  Milliseconds duration(Milliseconds low, Milliseconds high, std::string_view hint = {}) const;
  long long number(long long low, long long high) const;
  /// yes or no.
  bool flag() const;
  /// Any bytes, but not without end.
  const std::string& words() const;
};

}  // namespace rlock::cli
