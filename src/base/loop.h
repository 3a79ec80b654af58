#pragma once

#include <poll.h>

#include <functional>
#include <span>
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

  /// Sleeps until a handler has run, `deadline` has passed, or one of `fds` is ready (its revents are set). Where
  /// several are true the first of these is reported: an answer found after a suspend is late, not ready.
  Wake wait(std::span<pollfd> fds, Deadline deadline);

  /// Waits for handlers alone.
  Wake wait(Deadline deadline) { return wait({}, deadline); }
  /// Waits until the deadline, whatever handlers run meanwhile.
  void wait_out(Deadline deadline);

 private:
  struct Watch {
    int fd;
    Handler handler;
  };
  bool run_handlers(std::span<const pollfd> polled);

  std::vector<Watch> watches_;
};

}  // namespace rlock
