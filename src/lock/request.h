#pragma once

#include <string>

#include "base/duration.h"
#include "lock/claim.h"
#include "lock/name.h"
#include "lock/script_call.h"

namespace rlock::lock {

/// What a claim says to the scripts by which acquisitions begin and are given up. The scripts' first lines state their
/// contracts.

/// `max_lease`: of the quorum; 0 for one server.
Request acquire_request(const LockName& name, const Claim& claim, const Question& question, Milliseconds max_lease);

/// `is_new`: the command has not been told a fence yet, so that a server may ask for a larger one.
Request settle_request(const LockName& name, const Claim& claim, Fence fence, bool is_new);

/// `waiter`: the one that leaves the queue too; empty for none.
Request cancel_request(const LockName& name, const Claim& claim, const std::string& waiter);

}  // namespace rlock::lock
