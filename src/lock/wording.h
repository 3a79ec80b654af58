#pragma once

#include <string>
#include <string_view>

#include "lock/lock.h"

namespace rlock::lock {

/// Who stands in the way, as the part of a message after the lock's name:
/// `held by deploy@web3 pid 812 "backup.sh --full" for 4m12s, lease 22s left`, or at its end `but it has died; free
/// in 22s`, `cooling for 12s after deploy@web3`, `held by another program (string of 36 bytes), never expires`. The
/// mode is named if it differs from the wanted one and either of them has slots.
std::string describe(const Busy& busy, Capacity wanted);
std::string describe(const Foreign& foreign);
/// `string of 36 bytes`, or another type alone: what a foreign key holds is often somebody's token, and is not shown.
std::string describe_key(std::string_view type, std::string_view value);
/// `3 are waiting already`, or `nobody may wait (--max-waiting 0)`.
std::string describe(const Full& full);
/// `done by root@db1 2s ago`, or with what was asked for: `v42 was done by root@db1 2s ago`, `2026-11-22 done by ...`.
std::string describe(const Done& done, const Claim& claim);

/// `2 failures, last exit 3 on db2`.
std::string describe(const Failures& failures, std::string_view host);
/// `3 attempts failed, last exit 3 on db2 5m ago`.
std::string describe(const Exhausted& exhausted);

/// Throw Error{usage} for a refusal that waiting cannot mend.
[[noreturn]] void refuse(const LockName& name, Capacity wanted, const Upgrade& upgrade);
[[noreturn]] void refuse(const LockName& name, const OtherOnce& other);

/// What ends a taker that a signal has ended before it had the lock.
Error interrupted(const LockName& name, int signal);

/// `on hold until 2026-11-25 08:00 by ann@ops1 (disk swap)`, with seconds if that time has any.
std::string describe(const Hold& hold);
/// The same without its first two words.
std::string describe_end(const Hold& hold);
/// The same for one who waits, with a weekday if that is less than six days away: `on hold until Mon 08:00 by ...`.
std::string describe(const Hold& hold, WallTime now);

/// The lock's name as a word of a command to be pasted into a shell, `--key=NAME` where it would be read as an option.
std::string key_word(std::string_view name);

/// `evicted by root@db1 pid 8784`.
std::string describe(const Eviction& eviction);

/// `deploy@web3 pid 812 "backup.sh --full"`, or `(no process)` for the PID where no process is left to kill.
std::string describe(const Owner& owner);

}  // namespace rlock::lock
