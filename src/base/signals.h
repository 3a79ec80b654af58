#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace rlock {

struct Signal {
  int number;
  bool typed;  // the terminal sent it, and to our whole process group
};

/// Signals that are blocked and read from a descriptor instead: nothing of ours runs inside a handler, and no
/// disposition is changed. One that was ignored when rlock started (nohup) stays ignored and is not delivered here.
class Signals {
 public:
  /// Blocks `delivered`, and SIGTTOU and those of failed writes for good. Throws Error{os}.
  explicit Signals(std::initializer_list<int> delivered);

  /// Who writes to a closed pipe, or a file that may not grow, learns that by errno, and no signal ends us.
  static void keep_failed_writes_quiet();

  int fd() const { return fd_.get(); }
  /// The next one, if one is pending.
  std::optional<Signal> next();

 private:
  Fd fd_;
};

/// "SIGTERM".
std::string signal_name(int number);

/// Reads "TERM", "SIGTERM" or "15"; nothing for what is no signal.
std::optional<int> parse_signal(std::string_view text);

}  // namespace rlock
