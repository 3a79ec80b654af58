#pragma once

#include <array>
#include <cstdint>

namespace rlock::run {

/// How this process is scheduled: asked for when it starts, and given to a child that must not inherit what we changed.
class Scheduling {
 public:
  Scheduling();
  /// Has this process scheduled that way again. Async-signal-safe.
  void restore() const;

 private:
  /// The kernel's sched_attr, as sched_setattr(2) has it: newer headers define it, older ones do not.
  struct Attributes {
    std::uint32_t size = 0;
    std::uint32_t policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::array<std::uint64_t, 3> deadline{};
  };

  Attributes attributes_;
  int slack_;  // of timers
};

/// Asks for the highest real-time priority, above any that the command may have, or else for the best nice value, so
/// that this process runs promptly on a busy machine. Without the permission nothing changes.
void become_punctual();

/// Keeps in memory what this process has used, and comes to use, of the mappings that it has now, where that is
/// permitted.
void keep_pages();

/// Keeps this process from preempting others when it wakes up. To be called at the end, when only tidying is left and a
/// waiter may be about to get the lock: a server on this machine answers the old holder before it writes to the next
/// one, and exiting takes the kernel as long as a script takes Redis.
void give_way();

}  // namespace rlock::run
