#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace rlock {

/// Whether this process ignores the signal, which it may have inherited.
bool is_ignored(int number);

/// Whether one of these blocked signals has been sent to this process, which does not ignore it.
bool is_any_pending(std::initializer_list<int> numbers);

/// Whether it is one of those by which people, terminals and service managers tell a program to stop.
constexpr bool tells_to_stop(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

struct Signal {
  int number;
  bool typed;  // sent by the terminal, to our whole process group
};

/// Signals that are blocked and read from a descriptor instead: nothing of ours runs inside a handler, and no
/// disposition is changed. One that was ignored when rlock started (nohup) stays ignored and is not delivered here.
class Signals {
 public:
  /// Blocks `delivered`; and SIGTTOU, SIGPIPE and SIGXFSZ, which are never delivered. Throws Error{os}.
  explicit Signals(std::initializer_list<int> delivered) : Signals(set_of(delivered)) {}
  explicit Signals(const sigset_t& delivered);
  static sigset_t set_of(std::initializer_list<int> numbers);

  /// Blocks SIGPIPE and SIGXFSZ: a write to a closed pipe, or past a file size limit, then fails instead of ending us.
  static void keep_failed_writes_quiet();

  int fd() const { return fd_.get(); }
  /// The next pending signal, if there is one.
  std::optional<Signal> next();
  /// The signal stays blocked, but is no longer delivered.
  void drop(int number);

 private:
  sigset_t wanted_;
  Fd fd_;
};

/// For a process that no signal is to end, or to disturb.
void block_all_signals();

/// Raises the signal and unblocks it, so that it is delivered even if it was blocked.
void raise_unblocked(int number);

/// "SIGTERM".
std::string signal_name(int number);

/// Reads "TERM", "SIGTERM" or "15"; returns nothing for anything that is not a signal.
std::optional<int> parse_signal(std::string_view text);

}  // namespace rlock
