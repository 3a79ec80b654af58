#pragma once

#include <optional>
#include <string>

#include "lock/lock.h"

namespace rlock::lock {

/// Who stands in the way, as the part of a message after the lock's name:
/// `held by deploy@web3 pid 812 "backup.sh --full" for 4m12s, lease 22s left`, `cooling for 12s after deploy@web3`,
/// `held by another program (string "value"), never expires`. The mode is named if it differs from the wanted one and
/// either of them has slots.
std::string describe(const Busy& busy, Capacity wanted);
std::string describe(const Foreign& foreign);
/// `3 are waiting already`, or `nobody may wait (--max-waiting 0)`.
std::string describe(const Full& full);
/// `done by root@db1 2s ago`, or with the ID that was asked for: `v42 was done by root@db1 2s ago`.
std::string describe(const Done& done, const std::optional<std::string>& id);

/// Throw Error{usage} for a refusal that waiting cannot mend.
[[noreturn]] void refuse(const LockName& name, Capacity wanted, const Upgrade& upgrade);
[[noreturn]] void refuse(const LockName& name, const OtherOnce& other);

/// `evicted by root@db1 pid 8784`.
std::string describe(const Eviction& eviction);

/// `deploy@web3 pid 812 "backup.sh --full"`, or `pid -` where no process is left to kill.
std::string describe(const Owner& owner);

}  // namespace rlock::lock
