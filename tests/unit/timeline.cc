#include "cli/timeline.h"

#include <algorithm>

#include "base/columns.h"
#include "expect.h"

namespace rlock::unit {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const WallTime midnight{hours{24 * 20'000}};

/// The lines of a timeline of one day.
std::vector<std::string> draw(const std::vector<cli::Lane>& lanes, const cli::Screen& screen) {
  const std::string text = cli::draw_timeline(lanes, midnight, midnight + hours{24}, screen);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::vector<cli::Bar> every_minute() {
  std::vector<cli::Bar> bars;
  for (int i = 0; i < 24 * 60; ++i)
    bars.push_back({.begin = midnight + minutes{i}, .end = midnight + minutes{i} + seconds{20}});
  return bars;
}

void test_marks() {
  const cli::Screen narrow{.columns = 29, .utf8 = false};  // 24 columns: an hour each
  const cli::Bar hour{.begin = midnight + hours{2}, .end = midnight + hours{3}};
  const cli::Bar moment{.begin = midnight + hours{5}, .end = midnight + hours{5}};
  const cli::Bar failure{.begin = midnight + hours{8}, .end = midnight + hours{9} + minutes{30}, .failed = true};
  const auto lanes = draw({{.name = "job1", .bars = {hour, moment, failure}}}, narrow);
  expect_same(lanes[0],
              "job1   #  .  #X" + std::string(14, ' '),
              "an hour fills its column, a moment is seen, a failure is marked at its end");
  const auto busy = draw({{.name = "job1", .bars = every_minute()}}, narrow);
  expect_same(
      busy[0], "job1 " + std::string(24, '-'), "a run every minute that takes a third of it makes an even lane");
  const cli::Bar half{.begin = midnight + hours{2}, .end = midnight + hours{2} + minutes{30}};
  const auto shared = draw({{.name = "one", .bars = {half}}, {.name = "two", .bars = {half, half, half}}}, narrow);
  expect_same(shared[1].substr(4), shared[0].substr(4), "what several held at the same time is no higher");
  const cli::Bar later{.begin = half.begin + minutes{15}, .end = half.end + minutes{30}};
  const auto lapped = draw({{.name = "job1", .bars = {later, half}}}, narrow);
  expect_same(lapped[0], "job1   #" + std::string(21, ' '), "what overlaps makes up a whole hour");
  const auto all_day = draw({{.name = "job1", .bars = {{midnight - hours{9}, midnight + hours{99}}}}}, narrow);
  expect_same(all_day[0], "job1 " + std::string(24, '#'), "a run that began before and goes on fills the lane");
  const cli::Bar forgotten{.begin = {}, .end = midnight + hours{2}, .kind = cli::Bar::Kind::unknown};
  const auto unknown = draw({{.name = "job1", .bars = {hour, forgotten}}}, narrow);
  expect_same(
      unknown[0], "job1 ~~#" + std::string(21, ' '), "a time before the first known run differs from one without runs");
  const cli::Bar dead{midnight + hours{4}, midnight + hours{7}, true, cli::Bar::Kind::unknown};
  const auto died = draw({{.name = "job1", .bars = {{dead.begin, dead.begin}, dead, hour}}}, narrow);
  expect_same(died[0], "job1   # .~X" + std::string(17, ' '), "when a run has died is unknown");
  const auto outside = draw({{.name = "job1", .bars = {{midnight - hours{9}, midnight - hours{8}}}}}, narrow);
  expect_same(outside[0], "job1 " + std::string(24, ' '), "a run that ended before the day is not drawn");
}

void test_size() {
  std::vector<cli::Lane> lanes{{.name = "short", .bars = every_minute()}};
  lanes.push_back({.name = std::string(91, 'x'), .bars = {{midnight, midnight + hours{1}, true}}});
  lanes.push_back({.name = "日本\x1b[2J", .bars = {{midnight + hours{23}, midnight + hours{24}}}});
  for (const std::size_t columns : {40UL, 80UL, 100UL, 200UL}) {
    for (const bool utf8 : {false, true}) {
      const auto lines = draw(lanes, {.columns = columns, .utf8 = utf8});
      const std::size_t legend = columns < 80 ? 3 : 1;  // no entry is broken
      expect_same(
          lines.size(), 5 + legend, "there is a line for each lock, two for the axis, and a legend that is whole");
      std::size_t widest = 0;
      for (const std::string& line : lines) widest = std::max(widest, count_columns(line));
      expect(widest <= columns, "no line is wider than the screen", std::to_string(widest));
      expect_same(count_columns(lines[0]), columns, "a lane is as wide as the terminal");
    }
  }
  const auto coloured = draw(lanes, {.columns = 80, .colour = true, .utf8 = true});
  expect(coloured[1].find("\x1b[31m") != std::string::npos, "what failed is red where there are colours");
  expect(coloured[2].find("\x1b[2J") == std::string::npos, "a name cannot speak to the terminal");
}

/// In a week in which the clock is set back, the axis of the timeline names each day once, where it begins.
void test_changed_clock() {
  ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
  ::tzset();
  const WallTime begin{seconds{1792706400}};  // 2026-10-23 00:00 in summer time, two days before the change
  const std::string text = cli::draw_timeline(
      {{.name = "job1", .bars = {}}}, begin, begin + hours{24 * 7 + 1}, {.columns = 5 + 7 * 25 + 1, .utf8 = false});
  for (const std::string day : {"23 Oct", "24 Oct", "25 Oct", "26 Oct", "27 Oct", "28 Oct", "29 Oct"}) {
    const auto place = text.find(day);
    expect(place != std::string::npos && text.find(day, place + 1) == std::string::npos, day + " is named once", text);
  }
  const std::string half_days = cli::draw_timeline(
      {{.name = "job1", .bars = {}}}, begin + hours{48}, begin + hours{97}, {.columns = 60, .utf8 = false});
  expect(half_days.find("26 Oct") != std::string::npos, "the day after the change begins at midnight", half_days);
  ::unsetenv("TZ");
  ::tzset();
}

}  // namespace

void test_timelines() {
  test_marks();
  test_changed_clock();
  test_size();
}

}  // namespace rlock::unit
