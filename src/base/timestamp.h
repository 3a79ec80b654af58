#pragma once

#include <time.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

/// By this machine's clock.
WallTime wall_now();

/// Reads "08:00" (the most recent one), "today", "yesterday", "yesterday 22:00", "2026-11-22", "2026-11-22 08:00", in
/// the local time zone and with seconds if wanted, and RFC 3339: "2026-11-22T08:00:00Z", "2026-11-22T08:00:00+01:00".
/// Returns nothing for any other text.
std::optional<WallTime> parse_time(std::string_view text);

/// Reads a time to come: "08:00" (the next), "tomorrow 08:00", "mon 08:00" or "monday 08:00" (the next), and the forms
/// of parse_time() that have a date, which alone is its midnight. The time may have passed all the same. Returns
/// nothing for any other text.
std::optional<WallTime> parse_time_to_come(std::string_view text, WallTime now);

/// Whether parse_time_to_come() knows the word before a time of day: "tomorrow", or a day of the week.
bool names_coming_day(std::string_view word);

tm local_parts(WallTime time);
tm utc_parts(WallTime time);

/// As strftime(3), in English.
[[gnu::format(strftime, 2, 0)]] std::string format_parts(const tm& parts, const char* format);

/// RFC 3339 in UTC with milliseconds: "2026-11-20T21:02:18.250Z".
std::string format_utc(WallTime time);

/// For people, in the local time zone: "2026-11-20 22:02:18".
std::string format_local(WallTime time);
/// A time to come, which has seconds only if they are not 0: "2026-11-25 08:00".
std::string format_to_come(WallTime time);
/// The same, or "Mon 08:00" if that is less than six days after now.
std::string format_soon(WallTime time, WallTime now);

}  // namespace rlock
