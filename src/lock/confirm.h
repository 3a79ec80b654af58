#pragma once

#include "base/duration.h"
#include "base/loop.h"
#include "lock/claim.h"
#include "lock/conflict.h"
#include "lock/lease.h"
#include "lock/lock.h"

namespace rlock::lock {

/// Makes sure of a grant to `claim`: extends its short lease to the full length, and then waits until as many replicas
/// have it as the claim wants. Each question may take `timeout`. Returns the grant as it stands then, or why it is not
/// to be used, in which case the caller gives it back. Throws Error{unavailable} while the server does not answer.
Taken confirm(
    Loop& loop, Lock& lock, const Claim& claim, const LeaseTerms& terms, Milliseconds timeout, const Granted& granted);

}  // namespace rlock::lock
