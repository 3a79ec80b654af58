#include "cli/axis.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace rlock::cli {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::array<seconds, 19> steps{seconds{1},
                                        seconds{5},
                                        seconds{15},
                                        minutes{1},
                                        minutes{2},
                                        minutes{5},
                                        minutes{10},
                                        minutes{15},
                                        minutes{30},
                                        hours{1},
                                        hours{2},
                                        hours{3},
                                        hours{4},
                                        hours{6},
                                        hours{12},
                                        hours{24},
                                        hours{48},
                                        hours{7 * 24},
                                        hours{14 * 24}};

/// How many columns a label and a gap take. A label is a date, or a time with or without seconds, depending on the
/// step.
std::size_t label_columns(seconds step) {
  if (step >= hours{24})
    return 8;
  return step < minutes{1} ? 10 : 7;
}

tm local_parts(time_t time) {
  tm parts{};
  ::localtime_r(&time, &parts);
  return parts;
}

std::string format_label(time_t time, seconds step) {
  constexpr std::array<std::string_view, 12> months{
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const tm parts = local_parts(time);
  if (step >= hours{24})
    return fmt::format("{:02} {}", parts.tm_mday, months.at(static_cast<std::size_t>(parts.tm_mon)));
  const std::string minute = fmt::format("{:02}:{:02}", parts.tm_hour, parts.tm_min);
  return step < minutes{1} ? fmt::format("{}:{:02}", minute, parts.tm_sec) : minute;
}

/// The first round local time, a whole number of steps after midnight.
time_t first_tick(time_t begin, seconds step) {
  tm midnight = local_parts(begin);
  midnight.tm_hour = midnight.tm_min = midnight.tm_sec = 0;
  midnight.tm_isdst = -1;
  time_t tick = ::mktime(&midnight);
  const auto length = static_cast<time_t>(step.count());
  tick += (begin - tick + length - 1) / length * length;
  return tick;
}

seconds choose_step(seconds window, std::size_t columns) {
  for (const seconds step : steps) {
    const auto ticks = static_cast<std::size_t>(window / step) + 1;
    if (ticks * label_columns(step) <= columns)
      return step;
  }
  return std::max(steps.back(), window);
}

}  // namespace

Axis draw_axis(WallTime begin, WallTime end, std::size_t columns, bool utf8) {
  const auto from = static_cast<time_t>(std::chrono::floor<seconds>(begin).time_since_epoch().count());
  const auto window = std::max(seconds{1}, std::chrono::ceil<seconds>(end - begin));
  const seconds step = choose_step(window, columns);
  Axis axis;
  std::vector<bool> ticks(columns);
  for (time_t tick = first_tick(from, step); tick < from + window.count(); tick += static_cast<time_t>(step.count())) {
    const auto place = static_cast<std::size_t>(tick - from) * columns / static_cast<std::size_t>(window.count());
    const std::string label = format_label(tick, step);
    ticks[std::min(place, columns - 1)] = true;
    const bool is_free = axis.labels.empty() || place > axis.labels.size();
    if (!is_free || place + label.size() > columns)
      continue;
    axis.labels.append(place - axis.labels.size(), ' ');
    axis.labels += label;
  }
  const std::string_view tick_mark = utf8 ? "┴" : "+";
  const std::string_view line_mark = utf8 ? "─" : "-";
  for (const bool tick : ticks) axis.line += tick ? tick_mark : line_mark;
  return axis;
}

}  // namespace rlock::cli
