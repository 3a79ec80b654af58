#include "cli/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/columns.h"
#include "base/duration.h"
#include "base/escape.h"

namespace rlock::cli {
namespace {

constexpr std::size_t narrowest_lane = 20;

/// The characters that lanes are drawn with.
struct Marks {
  std::vector<std::string_view> levels;  // from held for a moment to held all of the column's time
  std::string_view failed, on_hold, unknown;
};

const Marks unicode{{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, "✗", "╌", "·"};
const Marks ascii{{".", "-", "=", "#"}, "X", "o", "~"};

/// What happened during the time of one column.
struct Slice {
  double held = 0;              // the part of that time during which the lock was held
  bool touched = false;         // whether it was held at all
  bool failed = false;          // a run that failed ended here
  bool part_of_failed = false;  // a run was under way that failed later
  bool on_hold = false;         // the lock was on hold, at least for a part of that time
  bool unknown = false;         // it may have been held
};

/// The time that is shown, divided into columns.
class Window {
 public:
  Window(WallTime begin, WallTime end, std::size_t columns)
      : begin_(begin), length_(std::max(Milliseconds{1}, end - begin)), columns_(columns) {}

  std::size_t columns() const { return columns_; }
  /// A time as a number of columns from the left; outside the window it is negative or beyond the last column.
  double place(WallTime time) const {
    return static_cast<double>((time - begin_).count()) * static_cast<double>(columns_) /
           static_cast<double>(length_.count());
  }
  Milliseconds column_length() const { return length_ / static_cast<long>(columns_); }

 private:
  WallTime begin_;
  Milliseconds length_;
  std::size_t columns_;
};

/// Draws a bar whose time before `counted` other bars have covered.
void draw_bar(const Bar& bar, WallTime counted, const Window& window, std::vector<Slice>& lane) {
  const auto right = static_cast<double>(lane.size());
  if (window.place(bar.end) < 0 || window.place(bar.begin) >= right)
    return;
  const double begin = std::max(window.place(bar.begin), 0.0);
  const double end = std::clamp(window.place(bar.end), begin, right);
  const auto first = static_cast<std::size_t>(begin);
  const double fresh = std::max(begin, window.place(counted));
  const auto last = std::max(first, static_cast<std::size_t>(std::ceil(end)) - (end > 0 ? 1 : 0));
  for (std::size_t i = first; i <= last; ++i) {
    const auto left = static_cast<double>(i);
    Slice& column = lane[i];
    column.on_hold = column.on_hold || bar.kind == Bar::Kind::on_hold;
    column.unknown = column.unknown || bar.kind == Bar::Kind::unknown;
    column.part_of_failed = column.part_of_failed || bar.failed;
    if (bar.kind != Bar::Kind::held)
      continue;
    column.touched = true;
    column.held += std::max(0.0, std::min(end, left + 1) - std::max(fresh, left));
  }
  lane[last].failed = lane[last].failed || bar.failed;
}

/// Draws what several held at the same time as if one had held it.
void draw_bars(std::vector<Bar> bars, const Window& window, std::vector<Slice>& lane) {
  std::sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) { return a.begin < b.begin; });
  WallTime counted{};
  for (const Bar& bar : bars) {
    draw_bar(bar, counted, window, lane);
    if (bar.kind == Bar::Kind::held)
      counted = std::max(counted, bar.end);
  }
}

std::string_view mark_of(const Slice& column, const Marks& marks) {
  if (column.failed)
    return marks.failed;
  if (!column.touched)
    return column.on_hold ? marks.on_hold : column.unknown ? marks.unknown : " ";
  const auto count = static_cast<double>(marks.levels.size());
  const auto level = static_cast<std::size_t>(std::clamp(std::floor(column.held * count), 0.0, count - 1));
  return marks.levels[level];
}

std::string_view colour_of(const Slice& column) {
  if (column.part_of_failed)
    return colour::red;
  if (column.touched)
    return colour::bright_green;
  return column.on_hold ? colour::yellow : colour::dim;
}

std::string draw_lane(const Lane& lane, const Window& window, const Marks& marks, bool coloured) {
  std::vector<Slice> columns(window.columns());
  draw_bars(lane.bars, window, columns);
  std::string out;
  std::string_view now = colour::none;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string_view wanted = coloured ? colour_of(columns[i]) : colour::none;
    if (wanted != now)
      out += wanted;
    now = wanted;
    out += mark_of(columns[i], marks);
  }
  return coloured ? out + std::string{colour::plain} : out;
}

/// Explains the marks that were drawn. None is separated from its meaning.
std::string draw_legend(const Window& window, const Marks& marks, std::string_view drawn, std::size_t columns) {
  std::vector<std::string> entries{
      fmt::format("one column is {}:", format_duration(window.column_length())),
      fmt::format("{} to {} held partly or wholly", marks.levels.front(), marks.levels.back())};
  const std::array<std::pair<std::string_view, std::string_view>, 3> others{
      {{marks.failed, "a run ended badly"}, {marks.on_hold, "on hold"}, {marks.unknown, "unknown"}}};
  for (const auto& [mark, meaning] : others) {
    if (drawn.find(mark) == std::string_view::npos)
      continue;
    entries.back() += ',';
    entries.push_back(fmt::format("{} {}", mark, meaning));
  }
  std::string out;
  std::string row;
  for (const std::string& entry : entries) {
    if (!row.empty() && count_columns(row) + 1 + count_columns(entry) > columns)
      out += std::exchange(row, "") + "\n";
    row += row.empty() ? entry : " " + entry;
  }
  return out + row + "\n";
}

std::string pad(std::string_view text, std::size_t columns, bool utf8) {
  std::string cut = cut_to_columns(text, columns, utf8, Keep::both_ends);
  cut.append(columns - count_columns(cut), ' ');
  return cut;
}

// ---- the axis

using std::chrono::seconds;
using namespace std::chrono_literals;

constexpr seconds steps[] = {1s,    5s,      15s,      1min,     2min,     5min,      10min,     15min,
                             30min, 1h,      2h,       3h,       4h,       6h,        12h,       24h,
                             48h,   7 * 24h, 14 * 24h, 28 * 24h, 91 * 24h, 182 * 24h, 365 * 24h, 1461 * 24h};

tm local_parts_of(time_t time) { return local_parts(WallTime{seconds{time}}); }

/// A label is a time, with or without seconds depending on the step, or a date: midnight says which day begins.
std::string format_label(time_t time, seconds step) {
  const tm parts = local_parts_of(time);
  const bool is_midnight = parts.tm_hour == 0 && parts.tm_min == 0 && parts.tm_sec == 0;
  if (step >= 365 * 24h)
    return format_parts(parts, "%b %Y");
  if (step >= 24h || (step >= 1h && is_midnight))
    return format_parts(parts, "%d %b");
  return format_parts(parts, step < 1min ? "%H:%M:%S" : "%H:%M");
}

/// The round local time after `tick`. Hours and days are those of the local clock, which may be set meanwhile.
time_t next_tick(time_t tick, seconds step) {
  const time_t plain = tick + static_cast<time_t>(step.count());
  if (step < 1h)
    return plain;
  tm parts = local_parts_of(tick);
  parts.tm_hour += static_cast<int>(step / 1h);
  parts.tm_isdst = -1;
  const time_t next = ::mktime(&parts);
  return next > tick ? next : plain;
}

/// The first round local time, a whole number of steps after midnight.
time_t first_tick(time_t begin, seconds step) {
  tm midnight = local_parts_of(begin);
  midnight.tm_hour = midnight.tm_min = midnight.tm_sec = 0;
  midnight.tm_isdst = -1;
  time_t tick = ::mktime(&midnight);
  if (const auto length = static_cast<time_t>(step.count()); step < 1h)
    tick += (begin - tick) / length * length;
  while (tick < begin) tick = next_tick(tick, step);
  return tick;
}

seconds choose_step(seconds window, std::size_t columns) {
  for (const seconds step : steps) {
    const auto ticks = static_cast<std::size_t>(window / step) + 1;
    const std::size_t label_and_gap = step < 1min ? 10 : 8;
    if (ticks * label_and_gap <= columns)
      return step;
  }
  return std::max(*std::rbegin(steps), window);
}

/// The time axis of a timeline: a line with ticks at round times, and the local time under each tick where there is
/// room.
struct Axis {
  std::string line, labels;
};

Axis draw_axis(WallTime begin, WallTime end, std::size_t columns, bool utf8) {
  const auto from = static_cast<time_t>(std::chrono::floor<seconds>(begin).time_since_epoch().count());
  const auto window = std::max(seconds{1}, std::chrono::ceil<seconds>(end - begin));
  const seconds step = choose_step(window, columns);
  Axis axis;
  std::vector<bool> ticks(columns);
  for (time_t tick = first_tick(from, step); tick < from + window.count(); tick = next_tick(tick, step)) {
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

}  // namespace

std::string draw_timeline(const std::vector<Lane>& lanes, WallTime begin, WallTime end, const Screen& screen) {
  std::size_t names = 1;
  for (const Lane& lane : lanes) names = std::max(names, count_columns(printable(lane.name)));
  names = std::min(names, std::max<std::size_t>(8, screen.columns * 3 / 10));
  const std::size_t wanted = screen.columns > names + 1 ? screen.columns - names - 1 : 0;
  const Window window{begin, end, std::max(narrowest_lane, wanted)};
  const Marks& marks = screen.utf8 ? unicode : ascii;
  std::string out;
  std::string drawn;
  for (const Lane& lane : lanes) {
    const std::string drawing = draw_lane(lane, window, marks, screen.colour);
    out += fmt::format("{} {}\n", pad(printable(lane.name), names, screen.utf8), drawing);
    drawn += drawing;
  }
  const std::string margin(names + 1, ' ');
  const Axis axis = draw_axis(begin, end, window.columns(), screen.utf8);
  return out + margin + axis.line + "\n" + margin + axis.labels + "\n" +
         draw_legend(window, marks, drawn, screen.columns);
}

}  // namespace rlock::cli
