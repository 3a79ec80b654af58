#pragma once

#include <termios.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "run/tree.h"

namespace rlock::run {

/// Why the guard stopped the command.
enum class Cause : int {
  none,       // it ended by itself
  lease,      // the keeper did not extend the deadline in time
  runtime,    // --max-runtime
  ordered,    // the keeper said so
  signalled,  // the command died of a signal, or ended after one was passed on: what it left is stopped too
  at_end,     // --at-end kill: the command exited by itself, and what it left is stopped
};

/// A terminal as it was before the command got it.
struct TerminalModes {
  termios line;              // how it echoes, edits lines and so on
  std::array<int, 3> flags;  // of the descriptors 0 to 2, which the command shares with our caller
};

/// From keeper to guard. `start` is followed by the command's additional environment, NAME=value strings each ended
/// by a NUL.
struct Order {
  enum class Kind : int {
    start,    // term_at, kill_at, foreground, modes
    lease,    // term_at, kill_at: the deadlines from now on
    signal,   // signal: pass it on to the command's group
    stop,     // kill_at: send the first signal now, KILL at that time
    kill,     // send KILL now
    resume,   // foreground, modes: continue a stopped command
    abandon,  // the keeper goes, although somebody has survived
  };
  Kind kind = Kind::lease;
  int signal = 0;
  bool foreground = false;               // give the terminal to the command's group
  std::optional<TerminalModes> modes{};  // for a guard that must take the terminal back
  Deadline term_at = never;
  Deadline kill_at = never;
};

/// From guard to keeper.
struct News {
  enum class Kind : int {
    started,      // value: the command's first process, which leads its group
    lent,         // value: the command's group, which now has the terminal
    not_started,  // value: the errno of exec; the guard is gone
    too_late,     // the order to start came after term_at; the guard is gone
    failed,       // value: the errno of another system call; the guard is gone
    silent,       // the keeper's own word for a guard that has not started the command, and is killed
    blind,        // /proc does not show our processes; the guard is gone
    lingering,    // the command has exited, and what it left is waited for
    stopping,     // cause: the first signal has been sent
    killing,      // cause: KILL is sent, again and again until no process is left
    surviving,    // as `ended`, while the guard goes on: survivors are still there after Sweep::usual
    stopped,      // value: the signal that stopped the command (job control)
    ended,        // value: the wait status, cause, survivors, told_by_terminal; the guard is gone
  };
  Kind kind = Kind::ended;
  int value = 0;
  Cause cause = Cause::none;
  Survivors survivors{};
  bool told_by_terminal = false;                // to stop: Ctrl-C, Ctrl-\ or a hang-up reached the whole group
  BootClock::time_point at = BootClock::now();  // a keeper that is stopped reads it later
};

/// One end of the connection between keeper and guard. It carries whole messages in order (SOCK_SEQPACKET), and reports
/// an end of file when the other process is gone, for whatever reason.
class Line {
 public:
  explicit Line(Fd fd) : fd_(std::move(fd)) {}
  /// Makes both ends. They are close-on-exec, and reading does not block. Throws Error{os}.
  static std::pair<Line, Line> make();

  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

  /// Never blocks, since that would keep us from the deadline. Returns false, with errno set, for a message that was
  /// dropped: the other side is gone, or stopped with its queue full, or the kernel has no memory for it.
  bool send(const Order& order, const std::string& environment = {}) const;
  bool send(const News& news) const;
  /// For the guard's last word: blocks until the queue has room or the other side is gone. If the word cannot be sent
  /// all the same, the connection is ended, so that the other side does not wait for it.
  void send_last(const News& news) const;

  enum class Status { message, nothing, closed };
  Status receive(Order& order, std::string& environment) const;
  Status receive(News& news) const;

  /// Blocks until the other side is gone.
  void await_end() const;

 private:
  Fd fd_;
};

}  // namespace rlock::run
