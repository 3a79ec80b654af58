#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/timestamp.h"

namespace rlock {

enum class Period { minute, hour, day, week, month };

/// In the order of the enumerators.
constexpr std::array<std::string_view, 5> period_names{"minute", "hour", "day", "week", "month"};

std::optional<Period> parse_period(std::string_view name);

/// One period of this machine's local calendar.
struct Slot {
  std::string id;    // "day:2026-11-22", "hour:2026-11-22T02:00Z": minutes and hours by their beginning in UTC, so that
                     // the hour that comes twice in autumn counts twice, and machines in several time zones agree
  std::string name;  // for people: "2026-11-22", "2026-11-22 03:00", "2026-W47", "2026-11"
};

/// The slot that contains that time. A week begins on Monday.
Slot slot_of(Period period, WallTime time);

}  // namespace rlock
