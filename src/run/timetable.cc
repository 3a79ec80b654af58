#include "run/timetable.h"

#include <algorithm>

#include "base/assert.h"

namespace rlock::run {

void Timetable::begin(Deadline prepare_at, Deadline runtime_end) {
  prepare_at_ = prepare_at;
  runtime_end_ = runtime_end;
}

void Timetable::set_lease(Deadline term_at, Deadline kill_at) {
  always(term_at <= kill_at, "KILL never comes before TERM is due");
  term_at_ = stop_kill_at_ == never ? term_at : never;
  lease_kill_at_ = kill_at;
}

void Timetable::only_kill(Deadline kill_at) {
  stop_kill_at_ = std::min(stop_kill_at_, kill_at);
  term_at_ = runtime_end_ = prepare_at_ = never;
}

Deadline Timetable::kill_at() const { return std::min(lease_kill_at_, stop_kill_at_); }

Deadline Timetable::next() const { return std::min({term_at_, kill_at(), runtime_end_, prepare_at_}); }

Timetable::Duty Timetable::due(BootClock::time_point now) const {
  if (now >= kill_at())
    return Duty::kill;
  if (now >= term_at_)
    return Duty::stop_for_lease;
  if (now >= runtime_end_)
    return Duty::stop_for_runtime;
  return now >= prepare_at_ ? Duty::prepare : Duty::none;
}

}  // namespace rlock::run
