// The seam: the system calls through which the program sees time, chance and the network (ld's --wrap). A process of a
// simulated machine gets the world's answers, everybody else the kernel's. rlock waits in ppoll() alone, so that is
// where a machine gives up control.

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "network.h"

namespace {

using sim::Machine;
using sim::Nanos;
using sim::Wire;

constexpr Nanos year_2026 = 1'790'000'000LL * sim::second;

Wire* wire_of(int fd) {
  Machine* machine = Machine::running();
  if (machine == nullptr)
    return nullptr;
  const auto found = machine->descriptors.find(fd);
  return found == machine->descriptors.end() ? nullptr : found->second;
}

bool is_simulated(int fd) { return Machine::running() != nullptr && fd >= 1'000'000; }

int fail(int error) {
  errno = error;
  return -1;
}

int look(pollfd* fds, nfds_t count) {
  int ready = 0;
  for (nfds_t i = 0; i < count; ++i) {
    fds[i].revents = 0;
    if (fds[i].fd == STDERR_FILENO)
      fds[i].revents = POLLOUT;
    ready += fds[i].revents != 0;
    const Wire* wire = fds[i].fd < 0 ? nullptr : wire_of(fds[i].fd);
    if (wire == nullptr)
      continue;
    const bool over = wire->error != 0 || wire->is_ended;
    if ((fds[i].events & POLLIN) != 0 && (over || !wire->inbox.empty()))
      fds[i].revents = static_cast<short>(fds[i].revents | POLLIN);
    if ((fds[i].events & POLLOUT) != 0 && (over || wire->is_connected))
      fds[i].revents = static_cast<short>(fds[i].revents | POLLOUT);
    ready += fds[i].revents != 0;
  }
  return ready;
}

int wait_for(pollfd* fds, nfds_t count, const timespec* timeout) {
  Machine& machine = *Machine::running();
  const Nanos now = machine.world().now();
  // A timer of the kernel is never early, and some microseconds late.
  const Nanos deadline =
      timeout == nullptr
          ? sim::forever
          : machine.clock.when(machine.clock.read(now) + timeout->tv_sec * sim::second + timeout->tv_nsec) +
                50 * sim::micro;
  for (;;) {
    machine.world().step();
    if (!machine.world().accusation().empty())
      machine.sleep(sim::forever);  // a process that never waits would not let the world end
    if (const int ready = look(fds, count))
      return ready;
    if (machine.world().now() >= deadline || (timeout != nullptr && timeout->tv_sec == 0 && timeout->tv_nsec == 0))
      return 0;
    machine.sleep(deadline);
  }
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names
extern "C" {

int __real_clock_gettime(clockid_t clock, timespec* time);
int __real_close(int fd);
int __real_connect(int fd, const sockaddr* address, socklen_t size);
ssize_t __real_getrandom(void* bytes, size_t size, unsigned flags);
int __real_getsockopt(int fd, int level, int option, void* value, socklen_t* size);
int __real_poll(pollfd* fds, nfds_t count, int timeout);
int __real_ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* signals);
ssize_t __real_recv(int fd, void* bytes, size_t size, int flags);
ssize_t __real_send(int fd, const void* bytes, size_t size, int flags);
int __real_setsockopt(int fd, int level, int option, const void* value, socklen_t size);
int __real_socket(int domain, int type, int protocol);
ssize_t __real_write(int fd, const void* bytes, size_t size);

int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  Machine* machine = Machine::running();
  if (machine == nullptr)
    return __real_clock_gettime(clock, time);
  const Nanos shown = machine->clock.read(machine->world().now()) + (clock == CLOCK_REALTIME ? year_2026 : 0);
  time->tv_sec = shown / sim::second;
  time->tv_nsec = shown % sim::second;
  return 0;
}

ssize_t __wrap_getrandom(void* bytes, size_t size, unsigned flags) {
  Machine* machine = Machine::running();
  if (machine == nullptr)
    return __real_getrandom(bytes, size, flags);
  for (size_t i = 0; i < size; i += sizeof(std::uint64_t)) {
    const std::uint64_t random = machine->random.next();
    std::memcpy(static_cast<char*>(bytes) + i, &random, std::min(sizeof random, size - i));
  }
  return static_cast<ssize_t>(size);
}

int __wrap_socket(int domain, int type, int protocol) {
  Machine* machine = Machine::running();
  return machine == nullptr ? __real_socket(domain, type, protocol) : machine->next_descriptor++;
}

/// Host n has the address 10.0.0.n.
int __wrap_connect(int fd, const sockaddr* address, socklen_t size) {
  if (!is_simulated(fd))
    return __real_connect(fd, address, size);
  Machine& machine = *Machine::running();
  sockaddr_in target{};
  std::memcpy(&target, address, std::min<std::size_t>(size, sizeof target));
  if (!machine.is_dead())
    machine.descriptors[fd] = &sim::the_network()->connect(machine, (ntohl(target.sin_addr.s_addr) & 0xffU) - 1);
  return fail(EINPROGRESS);
}

int __wrap_close(int fd) {
  if (!is_simulated(fd))
    return __real_close(fd);
  Machine& machine = *Machine::running();
  const auto found = machine.descriptors.find(fd);
  if (found != machine.descriptors.end()) {
    sim::the_network()->close(*found->second);
    machine.descriptors.erase(found);
  }
  return 0;
}

int __wrap_setsockopt(int fd, int level, int option, const void* value, socklen_t size) {
  return is_simulated(fd) ? 0 : __real_setsockopt(fd, level, option, value, size);
}

int __wrap_getsockopt(int fd, int level, int option, void* value, socklen_t* size) {
  if (!is_simulated(fd))
    return __real_getsockopt(fd, level, option, value, size);
  const Wire* wire = wire_of(fd);
  const int error = wire != nullptr ? wire->error : ECONNRESET;
  std::memcpy(value, &error, sizeof error);
  return 0;
}

int __wrap_poll(pollfd* fds, nfds_t count, int timeout) {
  if (Machine::running() == nullptr)
    return __real_poll(fds, count, timeout);
  const timespec time{timeout / 1000, timeout % 1000 * sim::milli};
  return wait_for(fds, count, timeout < 0 ? nullptr : &time);
}

int __wrap___poll_chk(pollfd* fds, nfds_t count, int timeout, size_t) { return __wrap_poll(fds, count, timeout); }

int __wrap_ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* signals) {
  if (Machine::running() == nullptr)
    return __real_ppoll(fds, count, timeout, signals);
  return wait_for(fds, count, timeout);
}

int __wrap___ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* signals, size_t) {
  return __wrap_ppoll(fds, count, timeout, signals);
}

ssize_t __wrap_send(int fd, const void* bytes, size_t size, int flags) {
  if (!is_simulated(fd))
    return __real_send(fd, bytes, size, flags);
  Wire* wire = wire_of(fd);
  if (wire == nullptr || wire->error != 0)
    return fail(ECONNRESET);
  if (!wire->is_connected)
    return fail(EAGAIN);
  return static_cast<ssize_t>(sim::the_network()->send(*wire, {static_cast<const char*>(bytes), size}));
}

ssize_t __wrap_recv(int fd, void* bytes, size_t size, int flags) {
  if (!is_simulated(fd))
    return __real_recv(fd, bytes, size, flags);
  Wire* wire = wire_of(fd);
  if (wire == nullptr || wire->error != 0)
    return fail(ECONNRESET);
  if (wire->inbox.empty())
    return wire->is_ended ? 0 : fail(EAGAIN);
  const std::size_t count = std::min(size, wire->inbox.size());
  std::memcpy(bytes, wire->inbox.data(), count);
  if ((flags & MSG_PEEK) == 0)
    wire->inbox.erase(0, count);
  return static_cast<ssize_t>(count);
}

ssize_t __wrap___recv_chk(int fd, void* bytes, size_t size, size_t, int flags) {
  return __wrap_recv(fd, bytes, size, flags);
}

/// What rlock says on standard error, which it may have opened once more, belongs to the story.
ssize_t __wrap_write(int fd, const void* bytes, size_t size) {
  Machine* machine = Machine::running();
  if (machine == nullptr)
    return __real_write(fd, bytes, size);
  std::string_view line{static_cast<const char*>(bytes), size};
  if (line.ends_with('\n'))
    line.remove_suffix(1);
  machine->world().tell(machine->name(), line);
  return static_cast<ssize_t>(size);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
