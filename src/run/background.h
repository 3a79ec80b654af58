#pragma once

#include <sys/types.h>

#include <span>
#include <utility>

#include "base/fd.h"
#include "lock/answer.h"
#include "lock/lease.h"
#include "lock/request.h"
#include "redis/server.h"
#include "run/pid_keeper.h"
#include "run/process.h"

namespace rlock::run {

/// The background process of `acquire --hold-pid` as the foreground process, which acquires the lock, sees it. It waits
/// for the grant, and exits silently when none comes.
class Background {
 public:
  /// Forks it into a session of its own, with none of our descriptors but a stderr that is a regular file, so that
  /// `$(...)` returns. To be called before a server is connected, and before signals are blocked, which must end it
  /// while it waits. Throws Error{os}.
  static Background start(const PidPlan& plan, const Process& process, std::span<redis::Server> servers);

  pid_t pid() const { return pid_; }
  /// Makes the background process responsible for the lock. Throws Error{internal} if it does not answer in time: it
  /// was killed or stopped, or so little of the lease is left that the process could only be told to end.
  void entrust(const lock::Claim& claim, const lock::Granted& grant) const;

 private:
  Background(const lock::LeaseTerms& terms, pid_t pid, Fd line) : terms_(terms), pid_(pid), line_(std::move(line)) {}

  lock::LeaseTerms terms_;
  pid_t pid_;
  Fd line_;
};

}  // namespace rlock::run
