#pragma once

#include <string_view>

namespace rlock {

enum class Verbosity { quiet, normal, verbose };

/// Diagnostics on stderr, a line each, which begins with "rlock: " and in which everything unprintable is escaped. A
/// line is one write, so that lines of several processes do not mix; it is dropped when nobody reads stderr. Callers
/// never pass a secret.
class Log {
 public:
  explicit Log(Verbosity verbosity) : verbosity_(verbosity) {}

  /// Something failed, or the user must know: always shown.
  void error(std::string_view message) const;
  /// An error, followed by a text of our own that is not escaped.
  void usage(std::string_view message, std::string_view text) const;
  /// What goes on, such as waiting or a conflict: not shown with --quiet.
  void notice(std::string_view message) const;
  /// A single step, with the time of day: shown only with --verbose.
  void step(std::string_view message) const;

 private:
  Verbosity verbosity_;
};

}  // namespace rlock
