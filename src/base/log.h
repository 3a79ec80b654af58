#pragma once

#include <string_view>

namespace rlock {

enum class Verbosity { quiet, normal, verbose };

/// Diagnostics: one line each on stderr, "rlock: " first, everything unprintable in it escaped. A line is one write,
/// so that lines of several processes do not mix; it is left out where nobody reads. Never given a secret.
class Log {
 public:
  explicit Log(Verbosity verbosity) : verbosity_(verbosity) {}

  /// Something failed, or the user must know: always shown.
  void error(std::string_view message) const;
  /// An error, and behind it a text of our own, as it is.
  void usage(std::string_view message, std::string_view text) const;
  /// What goes on: waiting, a conflict. Not with --quiet.
  void notice(std::string_view message) const;
  /// A step, with the time. Only with --verbose.
  void step(std::string_view message) const;

 private:
  Verbosity verbosity_;
};

}  // namespace rlock
