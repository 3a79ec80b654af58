#include "base/loop.h"

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace rlock {

void Loop::watch(int fd, Handler handler) { watches_.push_back({fd, std::move(handler)}); }

void Loop::unwatch(int fd) {
  std::erase_if(watches_, [fd](const Watch& w) { return w.fd == fd; });
}

Loop::Wake Loop::wait(std::span<pollfd> fds, Deadline deadline) {
  if (const Handler work = std::exchange(deferred_, {}))
    work();
  std::vector<pollfd> polled(fds.begin(), fds.end());
  if (mutes_ == 0) {
    for (const Watch& watch : watches_) polled.push_back({watch.fd, POLLIN, 0});
  }
  const int ready = poll(polled, deadline);
  if (ready > 0 && run_handlers(std::span{polled}.subspan(fds.size())))
    return Wake::event;
  if (BootClock::now() >= deadline)
    return Wake::deadline;
  if (ready <= 0)
    return Wake::event;
  std::copy_n(polled.begin(), fds.size(), fds.begin());
  return Wake::ready;
}

void Loop::wait_out(Deadline deadline) {
  while (wait(deadline) != Wake::deadline) {
  }
}

bool Loop::run_handlers(std::span<const pollfd> polled) {
  bool any = false;
  for (const pollfd& p : polled) {
    if (p.revents == 0)
      continue;
    // It is looked up again and copied because a handler may unwatch itself or another.
    const auto watch = std::find_if(watches_.begin(), watches_.end(), [&](const Watch& w) { return w.fd == p.fd; });
    if (watch == watches_.end())
      continue;
    const Handler handler = watch->handler;
    handler();
    any = true;
  }
  return any;
}

int Loop::poll(std::span<pollfd> fds, Deadline deadline) {
  timespec timeout{};
  const timespec* limit = nullptr;
  if (deadline != never) {
    timeout = to_timespec(deadline - BootClock::now());
    limit = &timeout;
  }
  const int ready = ::ppoll(fds.data(), fds.size(), limit, nullptr);
  if (ready < 0 && errno != EINTR && errno != EAGAIN)
    throw os_error("poll", errno);
  return ready;
}

}  // namespace rlock
