#include "base/calendar.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace rlock {
namespace {

std::string name_of(Period period, const tm& parts) {
  switch (period) {
    case Period::minute:
      return format_parts(parts, "%Y-%m-%d %H:%M");
    case Period::hour:
      return format_parts(parts, "%Y-%m-%d %H:00");
    case Period::day:
      return format_parts(parts, "%Y-%m-%d");
    case Period::week:
      return format_parts(parts, "%G-W%V");
    case Period::month:
      return format_parts(parts, "%Y-%m");
  }
  return {};
}

/// When the minute or hour began.
WallTime begin_of(Period period, WallTime time, const tm& parts) {
  const std::chrono::minutes minutes{period == Period::hour ? parts.tm_min : 0};
  return time - minutes - std::chrono::seconds{parts.tm_sec};
}

}  // namespace

std::optional<Period> parse_period(std::string_view name) {
  const auto* const found = std::find(period_names.begin(), period_names.end(), name);
  return found == period_names.end() ? std::nullopt : std::optional{static_cast<Period>(found - period_names.begin())};
}

Slot slot_of(Period period, WallTime time) {
  const tm parts = local_parts(time);
  const std::string name = name_of(period, parts);
  const bool is_short = period == Period::minute || period == Period::hour;
  const std::string id = is_short ? format_parts(utc_parts(begin_of(period, time, parts)), "%Y-%m-%dT%H:%MZ") : name;
  return {.id = fmt::format("{}:{}", period_names.at(static_cast<std::size_t>(period)), id), .name = name};
}

}  // namespace rlock
