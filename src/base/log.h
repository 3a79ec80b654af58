#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace rlock {

enum class Verbosity { quiet, normal, verbose };

/// Diagnostics on stderr. Each is one line that begins with "rlock: ", with everything unprintable escaped. A line is
/// one write, so that lines of several processes do not mix; it is dropped if stderr does not take it within a tenth of
/// a second. Callers never pass a secret.
class Log {
 public:
  explicit Log(Verbosity verbosity) : verbosity_(verbosity) {}

  /// Something failed, or the user must know: always shown.
  void error(std::string_view message) const;
  /// An error, followed by a text of our own that is not escaped.
  void usage(std::string_view message, std::string_view text) const;
  /// News of what happens, such as waiting or a conflict: not shown with --quiet.
  void notice(std::string_view message) const;
  /// A single step, with the time of day: shown only with --verbose.
  void step(std::string_view message) const;
  /// The same, for a message that is costly to make: `message()` is called only if it is shown.
  template <std::invocable Message>
  void step(Message message) const {
    if (verbosity_ == Verbosity::verbose)
      step(std::string_view{std::string{message()}});
  }

 private:
  Verbosity verbosity_;
};

}  // namespace rlock
