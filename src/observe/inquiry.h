#pragma once

#include <functional>
#include <span>

#include "base/duration.h"
#include "base/error.h"
#include "base/loop.h"
#include "lock/name.h"
#include "lock/script_call.h"
#include "observe/budget.h"
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

/// Whom to ask: a node, and the whole cluster that it is part of, in which a lock that is moving to another node is
/// looked for. Outside a cluster both are the same server.
struct Addressee {
  redis::Server& node;
  redis::Server& whole;
};

/// Carries out an inquiry. All that it is made of must outlive it.
class Inquirer {
 public:
  /// Each exchange may take up to `timeout`.
  Inquirer(Loop& loop, const Inquiry& inquiry, Milliseconds timeout, Budget& budget)
      : loop_(loop), inquiry_(inquiry), timeout_(timeout), budget_(budget) {}

  /// Asks a server, or a cluster, about one lock. Both throw Error if a server fails.
  void ask(redis::Server& server, const lock::LockName& name);
  void ask_all(Addressee addressee, std::span<const lock::LockName> names);

 private:
  void ask_at_once(Addressee addressee, std::span<const lock::LockName> names);
  void pass_over(const redis::Server& server, const lock::LockName& name, const redis::Reply& reply) const;

  Loop& loop_;
  const Inquiry& inquiry_;
  Milliseconds timeout_;
  Budget& budget_;
};

}  // namespace rlock::observe
