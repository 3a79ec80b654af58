#pragma once

namespace rlock::run {

/// Asks for real-time priority, or else for the best nice value, so that this process runs promptly on a busy machine.
/// Without the permission nothing changes. To be called after the last fork, since the command must not inherit it.
void become_punctual();

/// Keeps every page that this process has used, and those that it comes to use, in memory, where that is permitted.
void keep_pages();

/// Keeps this process from preempting others when it wakes up. To be called at the end, when only tidying is left and a
/// waiter may be about to get the lock: a server on this machine answers the old holder before it writes to the next
/// one, and exiting takes the kernel as long as a script takes Redis.
void give_way();

}  // namespace rlock::run
