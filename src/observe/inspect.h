#pragma once

#include <functional>
#include <vector>

#include "base/duration.h"
#include "base/loop.h"
#include "lock/name.h"
#include "lock/script_call.h"
#include "observe/budget.h"
#include "observe/facts.h"
#include "redis/server.h"

namespace rlock::observe {

/// One call of a read-only script for each of many locks. A lock may be asked about twice, when an attempt failed
/// half-way.
struct Inquiry {
  std::function<lock::Request(const lock::LockName&)> ask;
  std::function<void(const lock::LockName&, lock::Fields)> take;
  /// Called when the script itself failed on what is stored under that name: one such lock must not hide the others.
  std::function<void(const lock::LockName&, const Error&)> pass_over;
};

/// Asks `server` about all the locks. Those that are moving to another node are looked for in the `whole` cluster that
/// the server is part of; outside a cluster `whole` is the server itself. Throws Error if a server fails.
void inquire(Loop& loop,
             redis::Server& server,
             redis::Server& whole,
             const std::vector<lock::LockName>& names,
             const Inquiry& inquiry,
             Milliseconds timeout,
             Budget& budget);

lock::Request status_request(const lock::LockName& name);

/// The facts of one lock. Throws as call_script() does.
LockFacts inspect(Loop& loop, redis::Server& server, const lock::LockName& name, Deadline deadline);

}  // namespace rlock::observe
