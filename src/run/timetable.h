#pragma once

#include "base/clock.h"

namespace rlock::run {

/// The guard's deadlines, and which of them is due.
class Timetable {
 public:
  /// What has come due. If several have, the latest in this list goes first.
  enum class Duty {
    none,
    prepare,           // for a kill
    stop_for_runtime,  // --max-runtime is over
    stop_for_lease,    // the lease requires the first signal
    kill,
  };

  /// The command has been started.
  void begin(Deadline prepare_at, Deadline runtime_end);
  /// The lease allows the command to run, and to live, until then.
  void set_lease(Deadline term_at, Deadline kill_at);
  void prepared() { prepare_at_ = never; }
  /// The first signal has been sent: all that is left to do is to kill, by then or earlier if the lease requires it.
  void only_kill(Deadline kill_at);
  void kill_earlier(BootClock::duration by) { only_kill(kill_at() - by); }

  Deadline next() const;
  Duty due(BootClock::time_point now) const;
  Deadline kill_at() const;

 private:
  Deadline term_at_ = never;
  Deadline lease_kill_at_ = never;
  Deadline stop_kill_at_ = never;  // set once the first signal has been sent; the lease is renewed meanwhile
  Deadline runtime_end_ = never;
  Deadline prepare_at_ = never;
};

}  // namespace rlock::run
