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

/// A question that is put about each of many locks: one call of a script that only reads. It may be put twice, when an
/// attempt has failed half way.
struct Inquiry {
  std::function<lock::Request(const lock::LockName&)> ask;
  std::function<void(const lock::LockName&, lock::Fields)> take;
  /// The script itself failed on what is stored there: one such lock must not hide the others.
  std::function<void(const lock::LockName&, const Error&)> pass_over;
};

/// At a server that has all the locks but for those that are just moving: those are looked for in the `whole` cluster,
/// of which the server is one; elsewhere that is the server itself.
void inquire(Loop& loop,
             redis::Server& server,
             redis::Server& whole,
             const std::vector<lock::LockName>& names,
             const Inquiry& inquiry,
             Milliseconds timeout,
             Budget& budget);

lock::Request status_request(const lock::LockName& name);

/// Of one lock. Reads only, as all here. Throws as call_script() does.
LockFacts inspect(Loop& loop, redis::Server& server, const lock::LockName& name, Deadline deadline);

}  // namespace rlock::observe
