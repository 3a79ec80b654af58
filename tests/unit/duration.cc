#include "base/duration.h"

#include "expect.h"

namespace rlock::unit {
namespace {

void reads(std::string_view text, long long ms) {
  const auto parsed = parse_duration(text);
  expect(parsed && parsed->count() == ms, "a duration is read as that many ms", text);
}

void refuses(std::string_view text) { expect(!parse_duration(text), "a text that is not a duration is refused", text); }

}  // namespace

void test_durations() {
  reads("30", 30'000);
  reads("0", 0);
  reads("1.5", 1500);
  reads(".5s", 500);
  reads("250ms", 250);
  reads("10m", 600'000);
  reads("2h", 7'200'000);
  reads("7d", 604'800'000);
  reads("0.3", 300);     // has no exact double
  reads("0.0001ms", 1);  // anything above zero is at least 1 ms
  reads("3650d", 315'360'000'000);
  reads("0." + std::string(400, '1'), 112);  // the last places are too small for a double
  reads("1h30m", 5'400'000);
  reads("7d12h", 648'000'000);
  reads("2d04h", 187'200'000);
  reads("1m1.5s", 61'500);
  reads("1d2h3m4s5ms", 93'784'005);
  for (const char* text :
       {"1h30", "30m1h", "1h1h", "1h30m2m", "1.5h30m", "1h-30m", "1h 30m", "h1m", "1hm", "5s1", "1ms1s"})
    refuses(text);
  for (const char* text : {"",    "-1",  "+1",  "s",   ".",    "1.", "1..2", "1.1.1", "1e3",   "1 s",
                           " 1",  "1 ",  "inf", "nan", "0x10", "1S", "1w",   "1ms2",  "3651d", "99999999999999999999",
                           "1\n", "\xff"})
    refuses(text);
  refuses({"1\0", 2});

  using namespace std::chrono_literals;
  expect_same(format_duration(350ms), "350ms", "less than a second is shown in ms");
  expect_same(format_duration(1s), "1s", "whole seconds have no fraction");
  expect_same(format_duration(1250ms), "1.2s", "a few seconds have one decimal digit");
  expect_same(format_duration(22s), "22s", "less than a minute is shown in seconds");
  expect_same(format_duration(4min + 12s), "4m12s", "minutes are shown with seconds");
  expect_same(format_duration(3h + 5min), "3h05m", "hours are shown with minutes");
  expect_same(format_duration(52h), "2d04h", "days are shown with hours");
  expect_same(format_duration(-5s), "0ms", "a negative duration is shown as none");

  for (const auto ms : {1ms, 999ms, 1200ms, 22'000ms, 252'000ms, 5'400'000ms, 187'200'000ms})
    expect(parse_duration(format_duration(ms)) == ms, "a duration that is shown can be read back", format_duration(ms));
}

}  // namespace rlock::unit
