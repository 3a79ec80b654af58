#pragma once

#include <optional>
#include <string>

#include "lock/lock.h"

namespace rlock::lock {

/// Who stands in the way, as it follows the lock's name in a message:
/// `held by deploy@web3 pid 812 "backup.sh --full" for 4m12s, lease 22s left`, `cooling for 12s after deploy@web3`,
/// `held by another program (string "value"), never expires`. What is held otherwise than wanted is told so.
std::string describe(const Busy& busy, Capacity wanted);
std::string describe(const Foreign& foreign);
/// `3 are waiting already`.
std::string describe(const Full& full);
/// `done 5m ago by deploy@web3 pid 812 "migrate.sh"`.
/// "v42 done by root@db1 2s ago", for who asked by that ID.
std::string describe(const Done& done, const std::optional<std::string>& id);

/// Of a refusal that waiting does not mend; each is an Error{usage}.
[[noreturn]] void refuse(const LockName& name, Capacity wanted, const Upgrade& upgrade);
[[noreturn]] void refuse(const LockName& name, const OtherOnce& other);

/// "deploy@web3 pid 812 "backup.sh --full"".
std::string describe(const Owner& owner);

}  // namespace rlock::lock
