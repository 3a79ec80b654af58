#pragma once

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
  signalled,  // the command died of a signal, or was passed one that stops: its tree goes with it
  at_end,     // --at-end kill: what it left when it had exited by itself
};

/// From keeper to guard. `start` is followed by the command's additional environment, NAME=value strings each ended
/// by a NUL.
struct Order {
  enum class Kind : int {
    start,   // term_at, kill_at, foreground
    lease,   // term_at, kill_at: the deadlines from now on
    signal,  // signal: pass it on to the command's group
    stop,    // kill_at: the first signal now, KILL then
    kill,    // KILL now
    resume,  // foreground: continue a stopped command
  };
  Kind kind = Kind::lease;
  int signal = 0;
  bool foreground = false;  // the command's group is to have the terminal
  Deadline term_at = never;
  Deadline kill_at = never;
};

/// From guard to keeper.
struct News {
  enum class Kind : int {
    lent,         // value: the command's group, which has been given the terminal
    not_started,  // value: the errno of exec
    too_late,     // the order to start came after term_at; the guard is gone
    failed,       // value: the errno of another system call; the guard is gone
    blind,        // /proc does not show our processes; the guard is gone
    lingering,    // the command has exited, and what it left is waited for
    stopping,     // cause: it has been told to stop
    killing,      // cause: KILL, again and again until nobody is left
    surviving,    // survivors: still there after some time of that
    stopped,      // value: the signal that stopped the command (job control)
    ended,        // value: the wait status, cause, survivors; the guard is gone
  };
  Kind kind = Kind::ended;
  int value = 0;
  Cause cause = Cause::none;
  Survivors survivors{};
};

/// One end of the keeper's and the guard's line: whole messages in order (SOCK_SEQPACKET), and an end of file when the
/// other process is gone, however it went.
class Line {
 public:
  explicit Line(Fd fd) : fd_(std::move(fd)) {}
  /// Both ends, close-on-exec and non-blocking to read. Throws Error{os}.
  static std::pair<Line, Line> make();

  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

  /// What cannot be delivered is dropped: the other side is gone, as its end of file says, or is stopped and has left
  /// a queue full of messages unread. Waiting for it would keep us from the deadline.
  void send(const Order& order, const std::string& environment = {}) const;
  void send(const News& news) const;
  /// Waits until the other side has taken so much that there is room, or is gone: for what must not be dropped.
  void insist(const News& news) const;

  enum class Status { message, nothing, closed };
  Status receive(Order& order, std::string& environment) const;
  Status receive(News& news) const;

  /// Blocks until the other side is gone.
  void await_end() const;

 private:
  Fd fd_;
};

}  // namespace rlock::run
