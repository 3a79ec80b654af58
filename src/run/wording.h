#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "lock/answer.h"
#include "lock/lease.h"
#include "run/messages.h"
#include "run/plan.h"
#include "run/verdict.h"

namespace rlock::run {

/// What may have become of a lock that, as Redis says, is no longer ours.
constexpr std::string_view how_locks_vanish =
    "it was released by force, deleted or taken over, or Redis has lost its data";

/// The message that the command is being started, and when it must stop unless the lease is renewed.
std::string describe_start(const Plan& plan, const lock::Lease& lease);

/// The message that the first signal has been sent to the command, or to what it left running.
std::string describe_stop(Cause cause, const Plan& plan);

/// Which signal ended the command, where nothing else says so. Like a shell, it is silent about INT and PIPE.
std::optional<std::string> describe_signal(const Verdict& verdict, const Plan& plan);

/// That an attempt of several has failed, with --attempts, and when the next may begin; or that no more are made.
std::string describe_attempt(const Plan& plan, const lock::Release& release);

/// The message for a guard's news that the command did not start.
std::string describe_failure(const News& news, const Plan& plan);

/// Why the lock could not be released, until when it therefore stays taken, and what Redis will not know.
std::string describe_failed_release(const Plan& plan,
                                    const lock::Lease& lease,
                                    const Verdict& verdict,
                                    const Error& why);

/// "3 processes (pid 812, 813, 815)".
std::string describe(const Survivors& survivors);

}  // namespace rlock::run
