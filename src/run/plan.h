#pragma once

#include <optional>

#include "base/duration.h"
#include "base/exit_code.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "lock/taker.h"
#include "run/command.h"

namespace rlock::run {

/// What `rlock run` was asked to do, after defaults and checks.
struct Plan {
  Command command;
  lock::LockName name;
  lock::Claim claim;
  std::optional<lock::Token> inherited;  // of an enclosing run that holds this lock, to re-enter it
  lock::LeaseTerms lease;
  Milliseconds max_lease{};
  lock::Patience patience;
  OnLost on_lost = OnLost::kill;
  ExitCode conflict = ExitCode::conflict;
};

}  // namespace rlock::run
