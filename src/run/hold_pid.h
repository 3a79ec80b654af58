#pragma once

#include <optional>
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

/// For whom a lock is held that no command of ours runs in.
struct HoldPlan {
  lock::LockName name;
  lock::Claim claim;  // with the owner that is to be shown, but for its pid; its token and level may change
  lock::Owner owner;
  lock::LeaseTerms lease;
  Milliseconds max_lease{};
  Milliseconds timeout{};
  int signal = SIGTERM;
};

/// Keeps a lock for a process that is not ours to start or to kill, such as a script's shell: renews it until the
/// process ends, then releases it. When the lease cannot be kept, or we are told to stop, the process gets a signal;
/// what it does then is its own affair. Runs in the background process that Holder makes.
class PidKeeper {
 public:
  /// `process` and `servers`, which are not connected to yet, stay the caller's.
  PidKeeper(HoldPlan plan, const Process& process, std::span<redis::Server> servers);

  void keep(const lock::Granted& grant);

 private:
  void wait_until(Deadline deadline);
  void hold(Renewer& renewer);
  void stop(const Renewer& renewer);
  void release();

  HoldPlan plan_;
  const Process* process_;
  Log log_{Verbosity::quiet};  // to nowhere: stderr is closed
  Loop loop_;
  Signals signals_;
  BootTimer alarm_;  // a timer that counts the time suspended: nothing else would wake us right after it
  lock::Lock lock_;
  bool ended_ = false;  // the process
};

/// The background process, as the one that acquires the lock sees it: it waits for the grant, and ends without a word
/// when there is none.
class Holder {
 public:
  /// Forks it into a session of its own, with none of our descriptors, so that `$(...)` returns. Called before anything
  /// is opened that it could inherit. Throws Error{os}.
  Holder(const HoldPlan& plan, const Process& process, std::span<redis::Server> servers);

  pid_t pid() const { return pid_; }
  /// From now on the lock is its business. Throws Error{internal} when it has been killed.
  void entrust(const lock::Claim& claim, const lock::Granted& grant) const;

 private:
  pid_t pid_ = -1;
  Fd line_;
};

}  // namespace rlock::run
