#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/duration.h"
#include "base/error.h"
#include "lock/token.h"

namespace rlock::cli {

/// Returns "; did you mean WORD?" with the candidate nearest to `word`, if it is only a typing error away; else an
/// empty string.
std::string did_you_mean(std::string_view word,
                         std::span<const std::string_view> candidates,
                         std::string_view prefix = {});

/// Whether only the size of a duration can be wrong: with other digits it would be one.
bool has_form_of_duration(std::string text);

/// The duration that was probably meant by "10min", "1 h", "2Hours", "1h30" or "1w"; empty for text that is none.
std::string meant_duration(std::string_view text);

/// The signals that completions offer and that a mistyped one is compared with.
constexpr std::array<std::string_view, 7> common_signals{"TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL"};

/// One value as it was given, and its origin, so that an error can name the place.
struct Value {
  std::string text{};
  std::string origin;  // "--ttl", "RLOCK_REDIS_TIMEOUT" or "/etc/rlock.conf:3: ttl"
  ExitCode fault = ExitCode::usage;
  std::size_t index = 0;  // of an option with words to choose from, the index of the word

  /// Throws Error{fault} that names the origin. The readers below throw it for a value that makes no sense.
  [[noreturn]] void refuse(std::string_view why) const;
  /// Throws Error{config} if the value is empty and so no name of a file.
  void check_file() const;
  /// Refuses a value that is not one of these words; `others` says what it might be instead of a word.
  [[noreturn]] void refuse_word(std::span<const std::string_view> words, std::string_view others = {}) const;
  /// Accepts a duration in [low, high]; `hint` is added to the refusal of one that is too long.
  Milliseconds duration(Milliseconds low, Milliseconds high, std::string_view hint = {}) const;
  /// Accepts a whole number in [low, high].
  long long number(long long low, long long high) const;
  /// Accepts the name of a signal in upper or lower case, with or without "SIG", and a number.
  int signal() const;
  /// Accepts "yes" and "no".
  bool flag() const;
  /// Accepts what acquire prints. A refusal does not show it, since it is a secret.
  lock::Token token() const;
  /// Accepts any bytes, up to a limit.
  const std::string& bytes() const;
};

}  // namespace rlock::cli
