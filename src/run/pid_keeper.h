#pragma once

#include <signal.h>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/signals.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "run/process.h"
#include "run/renewer.h"

namespace rlock::run {

/// What `acquire --hold-pid` asks for: the lock, and the signal for the process that works under it.
struct PidPlan {
  lock::LockName name;
  lock::Claim claim;  // its owner lacks the keeper's pid; the grant brings the token and level that it was given to
  lock::LeaseTerms lease;
  Milliseconds max_lease{};
  Milliseconds timeout{};
  int signal = SIGTERM;
};

/// A second process beside the keeper of a PID, which watches that keeper: when it was killed, or has not been heard
/// for too long, the process that works under the lock is told so and gets the signal. It speaks with nobody else, and
/// ends with that process.
class Witness {
 public:
  /// Forks it. Nothing of the caller's stays open there but a stderr that is a regular file. Throws Error{os}.
  static Witness start(const PidPlan& plan, const Process& process);

  /// The keeper will be heard again before the deadline. While that is `never`, as it is at first, the keeper may end.
  void expect_before(Deadline deadline) const;
  /// Whether the witness tells, or has told, the process that the lock is lost.
  bool tells_loss() const;
  int fd() const { return line_.get(); }

 private:
  explicit Witness(Fd line) : line_(std::move(line)) {}

  Fd line_;
};

/// Keeps a lock for a process that we neither started nor may kill, such as a script's shell: renews it until the
/// process ends, then releases it. When the lease cannot be kept, or we are told to stop, the process gets a signal;
/// how it reacts is its own affair. Runs in the process that Background starts.
class PidKeeper {
 public:
  /// All but the plan must outlive the keeper; none of the servers may be connected to yet.
  PidKeeper(PidPlan plan, const Process& process, const Witness& witness, std::span<redis::Server> servers);
  PidKeeper(const PidKeeper&) = delete;
  PidKeeper& operator=(const PidKeeper&) = delete;

  void keep(const lock::Granted& grant);

 private:
  void hold(Renewer& renewer);
  void renew(Renewer& renewer);
  void stop(const Renewer& renewer);
  void release(Deadline lease_end, std::string_view how);

  PidPlan plan_;
  const Process* process_;
  const Witness* witness_;
  Log log_{Verbosity::quiet};  // its output is lost, since stderr is /dev/null
  Loop& loop_;
  Signals signals_;
  BootTimer alarm_;  // it counts the time that the machine is suspended, so that it wakes us right after a resume
  lock::Lock lock_;
  bool process_has_ended_ = false;
};

/// When the witness of a keeper with that lease must have heard from it.
Deadline witness_limit(const lock::Lease& lease);

/// Closes every descriptor but these; 0, 1 and 2 become /dev/null. Nothing of the caller's may stay open in a process
/// in the background, such as a pipe that `$(...)` reads or a file that flock(1) locked. Empty ones (-1) are ignored.
void close_all_but(std::vector<int> kept);

}  // namespace rlock::run
