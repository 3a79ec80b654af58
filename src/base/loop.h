#pragma once

#include <poll.h>

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace rlock {

/// Where a process that talks to Redis waits (the guard does not talk to Redis and has a wait of its own). Its callers
/// read as a sequence ("send, wait for the answer"); whatever may happen meanwhile (a signal, news from the guard) is
/// registered once with watch() and handled inside any wait.
class Loop {
 public:
  using Handler = std::function<void()>;

  enum class Wake {
    ready,     // one of the descriptors waited for
    event,     // a handler has run, or the sleep was interrupted: look at what has changed, then wait again
    deadline,  // it has passed
  };

  /// Calls `handler` whenever `fd` is readable during a wait, until unwatch(). The descriptor stays the caller's. A
  /// handler may throw: that ends the wait.
  void watch(int fd, Handler handler);
  void unwatch(int fd);
  /// Calls `work` once, when the next wait begins: by then we have sent what others wait for, and they work meanwhile.
  void at_next_wait(Handler work) { deferred_ = std::move(work); }

  /// Sleeps until a handler has run, `deadline` has passed, or one of `fds` is ready (its revents are set). Where
  /// several are true, handlers count first, then the deadline, then readiness: an answer found after a suspend is
  /// late.
  Wake wait(std::span<pollfd> fds, Deadline deadline);

  /// Waits for handlers alone.
  Wake wait(Deadline deadline) { return wait({}, deadline); }
  /// Waits until the deadline, whatever handlers run meanwhile.
  void wait_out(Deadline deadline);

  /// While it lives no handler runs in any wait: for work that must be finished even though a handler has just thrown,
  /// or would throw.
  class [[nodiscard]] Mute {
   public:
    explicit Mute(Loop& loop) : loop_(loop) { ++loop_.mutes_; }
    Mute(const Mute&) = delete;
    Mute& operator=(const Mute&) = delete;
    ~Mute() { --loop_.mutes_; }

   private:
    Loop& loop_;
  };

 private:
  struct Watch {
    int fd;
    Handler handler;
  };
  /// Sleeps in ppoll(2), which the simulator (tests/sim) replaces. Returns how many descriptors are ready, or less than
  /// one.
  static int poll(std::span<pollfd> fds, Deadline deadline);
  bool run_handlers(std::span<const pollfd> polled);

  std::vector<Watch> watches_;
  Handler deferred_;
  int mutes_ = 0;
};

}  // namespace rlock
