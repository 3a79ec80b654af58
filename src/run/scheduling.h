#pragma once

namespace rlock::run {

/// From now on this process is run as soon as there is work for it, whatever else the machine does and however nice it
/// was started, as far as it may ask for that. Said when it forks no more: none of this is meant for the command.
void become_punctual();

/// Keeps in memory the pages that this process has used, as far as it may ask for that.
void keep_pages();

/// From now on this process does not interrupt another that runs when there is work for it. Said at the end, when
/// what is left to do is of no use to anybody but the kernel, and somebody may be waiting for the lock: a server on
/// this machine wakes the old holder with its answer before it has written to the next one, and the end of a process
/// takes as long as a script.
void give_way();

}  // namespace rlock::run
