#include "run/timetable.h"

#include "expect.h"

namespace rlock::unit {
namespace {

using run::Timetable;
using Duty = Timetable::Duty;

constexpr BootClock::time_point at(int ms) { return BootClock::time_point{std::chrono::milliseconds{ms}}; }

/// TERM and KILL for the lease at 600 and 900 ms, a rehearsal at 50 and --max-runtime at 400.
Timetable full_timetable() {
  Timetable timetable;
  timetable.set_lease(at(600), at(900));
  timetable.begin(at(50), at(400));
  return timetable;
}

void test_running() {
  Timetable timetable = full_timetable();
  expect(timetable.next() == at(50) && timetable.due(at(49)) == Duty::none, "nothing is due before the rehearsal");
  expect(timetable.due(at(50)) == Duty::prepare, "the rehearsal comes first");
  timetable.prepared();
  expect(timetable.next() == at(400) && timetable.due(at(50)) == Duty::none, "there is one rehearsal");
  expect(timetable.due(at(400)) == Duty::stop_for_runtime, "--max-runtime ends a command that holds its lease");
  expect(timetable.due(at(600)) == Duty::stop_for_lease, "the lease comes before --max-runtime when both are due");
  expect(timetable.due(at(2000)) == Duty::kill, "whoever has slept past the lease kills at once");
  timetable.set_lease(at(1600), at(1900));
  expect(timetable.due(at(900)) == Duty::stop_for_runtime, "a renewal moves the lease, and not --max-runtime");
}

void test_stopping() {
  Timetable timetable = full_timetable();
  timetable.only_kill(at(2000));
  expect(timetable.next() == at(900), "a command that is being stopped is killed before its lease ends");
  expect(timetable.due(at(899)) == Duty::none, "the first signal is sent once");
  timetable.only_kill(at(700));
  expect(timetable.next() == at(700), "a stop that leaves less time makes the kill earlier");
  timetable.only_kill(at(800));
  expect(timetable.next() == at(700), "a stop that leaves more time does not make the kill later");
  timetable.kill_earlier(std::chrono::milliseconds{100});
  expect(timetable.due(at(600)) == Duty::kill, "a tree that takes long to kill is killed earlier");
  timetable.set_lease(at(1600), at(1900));
  expect(timetable.next() == at(600), "a renewal gives a command no more time than the stop has left it");
}

void test_renewal_while_stopping() {
  Timetable timetable = full_timetable();
  timetable.only_kill(at(2000));
  timetable.set_lease(at(1600), at(1900));
  expect(timetable.next() == at(1900), "a renewal gives a command that is being stopped its time");
  timetable.set_lease(at(2600), at(2900));
  expect(timetable.next() == at(2000), "that time has an end");
}

void test_idle() {
  const Timetable timetable;
  expect(timetable.next() == never && timetable.due(at(1'000'000)) == Duty::none, "nothing is due without a command");
}

}  // namespace

void test_timetables() {
  test_running();
  test_stopping();
  test_renewal_while_stopping();
  test_idle();
}

}  // namespace rlock::unit
