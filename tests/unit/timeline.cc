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

std::vector<cli::Block> every_minute() {
  std::vector<cli::Block> blocks;
  for (int i = 0; i < 24 * 60; ++i)
    blocks.push_back({.begin = midnight + minutes{i}, .end = midnight + minutes{i} + seconds{20}});
  return blocks;
}

void test_marks() {
  const cli::Screen narrow{.columns = 29, .utf8 = false};  // 24 columns: an hour each
  const cli::Block hour{.begin = midnight + hours{2}, .end = midnight + hours{3}};
  const cli::Block moment{.begin = midnight + hours{5}, .end = midnight + hours{5}};
  const cli::Block failure{.begin = midnight + hours{8}, .end = midnight + hours{9} + minutes{30}, .failed = true};
  const auto lanes = draw({{.name = "job1", .blocks = {hour, moment, failure}}}, narrow);
  expect_same(lanes[0],
              "job1   #  .  #X" + std::string(14, ' '),
              "an hour fills its column, a moment is seen, a failure is marked at its end");
  const auto busy = draw({{.name = "job1", .blocks = every_minute()}}, narrow);
  expect_same(
      busy[0], "job1 " + std::string(24, '-'), "a run every minute that takes a third of it makes an even lane");
  const auto all_day = draw({{.name = "job1", .blocks = {{midnight - hours{9}, midnight + hours{99}}}}}, narrow);
  expect_same(all_day[0], "job1 " + std::string(24, '#'), "a run that began before and goes on fills the lane");
  const auto unknown = draw({{.name = "job1", .blocks = {hour}, .known_since = midnight + hours{2}}}, narrow);
  expect_same(
      unknown[0], "job1 ~~#" + std::string(21, ' '), "a time before the first known run differs from one without runs");
  const auto outside = draw({{.name = "job1", .blocks = {{midnight - hours{9}, midnight - hours{8}}}}}, narrow);
  expect_same(outside[0], "job1 " + std::string(24, ' '), "a run that ended before the day is not drawn");
}

void test_size() {
  std::vector<cli::Lane> lanes{{.name = "short", .blocks = every_minute()}};
  lanes.push_back({.name = std::string(91, 'x'), .blocks = {{midnight, midnight + hours{1}, true}}});
  lanes.push_back({.name = "日本\x1b[2J", .blocks = {{midnight + hours{23}, midnight + hours{24}}}});
  for (const std::size_t columns : {40UL, 80UL, 100UL, 200UL}) {
    for (const bool utf8 : {false, true}) {
      const auto lines = draw(lanes, {.columns = columns, .utf8 = utf8});
      const std::size_t legend = columns < 80 ? 2 : 1;
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

}  // namespace

void test_timelines() {
  test_marks();
  test_size();
}

}  // namespace rlock::unit
