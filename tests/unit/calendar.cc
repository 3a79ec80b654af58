#include "base/calendar.h"

#include <stdlib.h>
#include <time.h>

#include "expect.h"

namespace rlock::unit {
namespace {

Slot slot_at(Period period, std::string_view utc) { return slot_of(period, *parse_time(utc)); }

void lies_in(Period period, std::string_view utc, std::string_view id, std::string_view name) {
  const Slot slot = slot_at(period, utc);
  expect_same(slot.id, std::string{id}, "a time lies in that slot");
  expect_same(slot.name, std::string{name}, "a slot is called so");
}

void set_zone(const char* zone) {
  ::setenv("TZ", zone, 1);
  ::tzset();
}

}  // namespace

void test_calendar() {
  const char* const before = ::getenv("TZ");
  const std::string zone = before != nullptr ? before : "UTC";
  set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
  lies_in(Period::day, "2026-11-21T22:59:59Z", "day:2026-11-21", "2026-11-21");
  lies_in(Period::day, "2026-11-21T23:00:00Z", "day:2026-11-22", "2026-11-22");
  lies_in(Period::week, "2026-11-22T22:59:59Z", "week:2026-W47", "2026-W47");  // a Sunday
  lies_in(Period::week, "2026-11-22T23:00:00Z", "week:2026-W48", "2026-W48");
  lies_in(Period::week, "2027-01-03T12:00:00Z", "week:2026-W53", "2026-W53");
  lies_in(Period::month, "2026-11-30T23:00:00Z", "month:2026-12", "2026-12");
  lies_in(Period::minute, "2026-11-22T02:17:59Z", "minute:2026-11-22T02:17Z", "2026-11-22 03:17");
  lies_in(Period::hour, "2026-10-25T00:30:00Z", "hour:2026-10-25T00:00Z", "2026-10-25 02:00");
  lies_in(
      Period::hour, "2026-10-25T01:30:00Z", "hour:2026-10-25T01:00Z", "2026-10-25 02:00");  // the second of that name
  set_zone("IST-5:30");
  lies_in(Period::hour, "2026-11-22T02:29:59Z", "hour:2026-11-22T01:30Z", "2026-11-22 07:00");
  set_zone(zone.c_str());
  expect(parse_period("month") == Period::month && !parse_period("months") && !parse_period(""), "a period has a name");
}

}  // namespace rlock::unit
