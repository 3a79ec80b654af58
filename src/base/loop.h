#pragma once

#include <poll.h>

#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"

namespace rlock {

/// The one place where rlock waits. Code above reads as a sequence ("send, wait for the answer"); what may happen
/// meanwhile (a signal, news from the guard) is registered once with watch() and is handled inside any wait.
class Loop {
 public:
  using Handler = std::function<void()>;

  enum class Wake {
    ready,     // one of the descriptors waited for
    event,     // a handler has run: look at what it changed, then wait again
    deadline,  // too late
  };

  /// Calls `handler` whenever `fd` is readable during a wait, until unwatch(). The descriptor stays the caller's. A
  /// handler may throw: that ends the wait.
  void watch(int fd, Handler handler);
  void unwatch(int fd);

  /// Sleeps until one of `fds` is ready (its revents are set), a handler has run, or `deadline` has passed. The
  /// clock is looked at before any descriptor: after a suspend the deadline comes first.
  Wake wait(std::span<pollfd> fds, Deadline deadline);

  /// Only handlers.
  Wake wait(Deadline deadline) { return wait({}, deadline); }

 private:
  struct Watch {
    int fd;
    Handler handler;
  };
  bool run_handlers(std::span<const pollfd> polled);

  std::vector<Watch> watches_;
};

}  // namespace rlock
