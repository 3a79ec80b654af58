#pragma once

#include <optional>
#include <span>

#include "lock/answer.h"
#include "lock/lock.h"
#include "lock/script_call.h"

namespace rlock::lock {

/// What the answers of a quorum's servers to one question amount to. Answers that failed, or come from a server that
/// may not vote, count for nothing here.

/// Of an acquire that most have granted. The fence is the largest: each server has given smaller ones to all holders
/// before. One that was entered again has the fence that is settled, which servers that do not know it tell as 0; where
/// none of them does it is 0.
Granted sum_up_grants(std::span<const Answered> answers, BootClock::time_point sent, Milliseconds ttl);

/// Of an acquire that was not granted by most: what most of the others say, since one alone may know of a holder that
/// the others have forgotten.
Answer sum_up_refusals(std::span<const Answered> answers, BootClock::time_point sent, Milliseconds ttl);

/// The answer of one that remembers what an acquire asks for only once: it has happened, whatever the others say.
std::optional<Answer> find_done(std::span<const Answered> answers, BootClock::time_point sent, Milliseconds ttl);

/// The largest fence that servers have refused to settle because another reader may have it; 0: none has.
std::uint64_t largest_used_fence(std::span<const Answered> answers);

/// Of a renewal that most have refused: one server that tells why is enough.
Renewal sum_up_losses(std::span<const Answered> answers);

/// Whether all have refused an acquire, so that nothing is to be given back.
bool all_refused(std::span<const Answered> answers);

/// Throws Error{usage} where two answers to an acquire come from one server: it would vote twice.
void check_distinct(std::span<const Answered> answers);

}  // namespace rlock::lock
