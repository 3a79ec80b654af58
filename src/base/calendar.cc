#include "base/calendar.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>

namespace rlock {
namespace {

std::string name_of(Period period, const tm& parts) {
  std::string month = fmt::format("{:04}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1);
  std::string day = fmt::format("{}-{:02}", month, parts.tm_mday);
  std::array<char, 32> week{};
  switch (period) {
    case Period::minute:
      return fmt::format("{} {:02}:{:02}", day, parts.tm_hour, parts.tm_min);
    case Period::hour:
      return fmt::format("{} {:02}:00", day, parts.tm_hour);
    case Period::day:
      return day;
    case Period::week:
      return {week.data(), ::strftime(week.data(), week.size(), "%G-W%V", &parts)};
    case Period::month:
      return month;
  }
  return {};
}

/// Of a minute or hour, by the time at which it began.
std::string id_of(Period period, time_t start) {
  tm parts{};
  ::gmtime_r(&start, &parts);
  std::string name = name_of(Period::minute, parts);
  name.replace(name.find(' '), 1, "T");
  return fmt::format("{}:{}Z", period_names.at(static_cast<std::size_t>(period)), name);
}

}  // namespace

std::optional<Period> parse_period(std::string_view name) {
  const auto* const found = std::find(period_names.begin(), period_names.end(), name);
  return found == period_names.end() ? std::nullopt : std::optional{static_cast<Period>(found - period_names.begin())};
}

Slot slot_of(Period period, WallTime time) {
  const time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  tm parts{};
  ::localtime_r(&seconds, &parts);
  std::string name = name_of(period, parts);
  if (period == Period::minute)
    return {.id = id_of(period, seconds - parts.tm_sec), .name = std::move(name)};
  if (period == Period::hour)
    return {.id = id_of(period, seconds - parts.tm_sec - 60L * parts.tm_min), .name = std::move(name)};
  std::string id = fmt::format("{}:{}", period_names.at(static_cast<std::size_t>(period)), name);
  return {.id = std::move(id), .name = std::move(name)};
}

}  // namespace rlock
