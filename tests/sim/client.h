#pragma once

#include <map>

#include "judge.h"
#include "lock/token.h"
#include "plan.h"
#include "world.h"

namespace sim {

/// The tokens that the commands of runs have in their environment now, by the client's number.
using Tokens = std::map<std::size_t, rlock::lock::Token>;

/// The program of one machine: what `rlock run`, `rlock acquire` with `rlock release`, `rlock release --force` or
/// `rlock hold` do with a lock, with the classes that those use.
void be_client(Machine& machine, const Plan& plan, std::size_t number, Judge& judge, Tokens& tokens);

}  // namespace sim
