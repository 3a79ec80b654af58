#pragma once

#include <signal.h>

#include <span>

#include "base/boot_timer.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/signals.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "run/process.h"
#include "run/renewer.h"

namespace rlock::run {

/// What `acquire --hold-pid` asks for: the lock, and the signal for the process that works under it.
struct HoldPlan {
  lock::LockName name;
  lock::Claim claim;  // its owner lacks the keeper's pid; the grant brings the token and level that it was given to
  lock::LeaseTerms lease;
  Milliseconds max_lease{};
  Milliseconds timeout{};
  int signal = SIGTERM;
};

/// Keeps a lock for a process that we neither started nor may kill, such as a script's shell: renews it until the
/// process ends, then releases it. When the lease cannot be kept, or we are told to stop, the process gets a signal;
/// how it reacts is its own affair. Runs in the process that Background starts.
class PidKeeper {
 public:
  /// `process` and `servers` must outlive the keeper; none of the servers may be connected to yet.
  PidKeeper(HoldPlan plan, const Process& process, std::span<redis::Server> servers);
  PidKeeper(const PidKeeper&) = delete;
  PidKeeper& operator=(const PidKeeper&) = delete;

  void keep(const lock::Granted& grant);

 private:
  void wait_until(Deadline deadline);
  void hold(Renewer& renewer);
  void stop(const Renewer& renewer);
  void release();

  HoldPlan plan_;
  const Process* process_;
  Log log_{Verbosity::quiet};  // its output is lost, since stderr is /dev/null
  Loop loop_;
  Signals signals_;
  BootTimer alarm_;  // it counts the time that the machine is suspended, so that it wakes us right after a resume
  lock::Lock lock_;
  bool process_has_ended_ = false;
};

}  // namespace rlock::run
