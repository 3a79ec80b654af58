#include "base/timestamp.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "base/word.h"

namespace rlock {

WallTime wall_now() {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);  // ours, since the simulator cannot wrap a call inside a shared C++ library
  return WallTime{std::chrono::seconds{t.tv_sec} +
                  std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds{t.tv_nsec})};
}

namespace {

/// Cuts the fraction of a second from a time of RFC 3339, such as rlock itself prints.
void cut_fraction(std::string& text) {
  constexpr std::string_view digits{"0123456789"};
  constexpr std::size_t at = std::string_view{"2026-11-25T08:00:00"}.size();
  if (text.size() > at + 1 && text[at] == '.' && digits.find(text[at + 1]) != digits.npos)
    text.erase(at, std::min(text.find_first_not_of(digits, at + 1), text.size()) - at);
}

/// Reads the parts that the format names, and nothing else, from all of the text.
bool reads_as(const std::string& text, const char* format, tm& parts) {
  const char* const end = ::strptime(text.c_str(), format, &parts);
  return end != nullptr && *end == '\0' && text.find_first_of(" \t") == text.find_last_of(" \t");
}

WallTime from_seconds(time_t seconds) { return WallTime{std::chrono::seconds{seconds}}; }

/// Not with to_time_t(), which counts in nanoseconds and may overflow: Redis may hold any time.
time_t count_seconds(WallTime time) {
  return static_cast<time_t>(std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
}

constexpr std::string_view tomorrow{"tomorrow"};
constexpr std::array<std::string_view, 7> weekdays{
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

/// Whether a word, in upper or lower case, is this weekday's name or its first three letters.
bool names_weekday(std::string_view word, std::string_view weekday) {
  const auto equal = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  return (word.size() == weekday.size() || (word.size() == 3 && weekday != tomorrow)) &&
         std::equal(word.begin(), word.end(), weekday.begin(), equal);
}

/// How many days after today the word means: the first of those on which the time of day is yet to come.
std::optional<int> days_ahead(std::string_view word, const tm& today, bool has_passed) {
  if (word.empty())
    return has_passed ? 1 : 0;
  if (names_weekday(word, tomorrow))
    return 1;
  for (std::size_t i = 0; i < weekdays.size(); ++i) {
    if (!names_weekday(word, weekdays.at(i)))
      continue;
    const int days = (static_cast<int>(i) - today.tm_wday + 7) % 7;
    return days == 0 && has_passed ? 7 : days;
  }
  return std::nullopt;
}

/// The time of day, or midnight where there is none, of so many days ago.
std::optional<WallTime> parse_clock(const std::string& clock, int days_ago) {
  tm parts = local_parts(wall_now());
  parts.tm_mday -= days_ago;
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  parts.tm_isdst = -1;
  if (!clock.empty() && !reads_as(clock, "%H:%M", parts) && !reads_as(clock, "%H:%M:%S", parts))
    return std::nullopt;
  return from_seconds(::mktime(&parts));
}

/// There is no 31 February, and 26-11-22 is not of our time.
bool is_real_day(const tm& parts, int day) { return parts.tm_mday == day && parts.tm_year >= 70; }

/// RFC 3339: a date and a time, with the offset from UTC.
std::optional<WallTime> parse_with_offset(const std::string& text) {
  for (const char* format :
       {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%SZ", "%Y-%m-%d %H:%M:%S%z"}) {
    tm parts{};
    if (!reads_as(text, format, parts))
      continue;
    const long offset = parts.tm_gmtoff;  // timegm() clears it
    const int day = parts.tm_mday;
    const time_t time = ::timegm(&parts);
    return is_real_day(parts, day) ? std::optional{from_seconds(time - offset)} : std::nullopt;
  }
  return std::nullopt;
}

/// A date, or a date and a time, of the local calendar.
std::optional<WallTime> parse_date(const std::string& text) {
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"}) {
    tm parts{};
    parts.tm_isdst = -1;
    if (!reads_as(text, format, parts))
      continue;
    const int day = parts.tm_mday;
    const time_t time = ::mktime(&parts);
    return is_real_day(parts, day) ? std::optional{from_seconds(time)} : std::nullopt;
  }
  return std::nullopt;
}

/// The last time at which a local clock showed that.
std::optional<WallTime> parse_most_recent(const std::string& clock) {
  const auto today = clock.empty() ? std::nullopt : parse_clock(clock, 0);
  return !today || *today <= wall_now() ? today : parse_clock(clock, 1);
}

}  // namespace

std::optional<WallTime> parse_time(std::string_view text) {
  std::string_view clock = text;
  if (const std::string_view day = take_word(clock); day == "today" || day == "yesterday")
    return parse_clock(std::string{clock}, day == "today" ? 0 : 1);
  std::string whole{text};
  cut_fraction(whole);
  if (const auto time = parse_with_offset(whole))
    return time;
  const auto time = parse_most_recent(whole);
  return time ? time : parse_date(whole);
}

std::optional<WallTime> parse_time_to_come(std::string_view text, WallTime now) {
  const auto space = text.rfind(' ');
  const std::string_view word = space == std::string_view::npos ? "" : text.substr(0, space);
  const std::string clock{text.substr(space == std::string_view::npos ? 0 : space + 1)};
  const tm today = local_parts(now);
  tm parts = today;
  parts.tm_sec = 0;
  parts.tm_isdst = -1;
  if (!reads_as(clock, "%H:%M", parts) && !reads_as(clock, "%H:%M:%S", parts))
    return text.find_first_of(":-") == std::string_view::npos ? std::nullopt : parse_time(text);  // no "yesterday"
  tm at = parts;
  const auto days = days_ahead(word, today, from_seconds(::mktime(&at)) <= now);
  if (!days)
    return parse_time(text);
  parts.tm_mday += *days;
  return from_seconds(::mktime(&parts));
}

bool names_coming_day(std::string_view word) { return !word.empty() && days_ahead(word, {}, false).has_value(); }

tm local_parts(WallTime time) {
  const time_t seconds = count_seconds(time);
  tm parts{};
  ::localtime_r(&seconds, &parts);
  return parts;
}

tm utc_parts(WallTime time) {
  const time_t seconds = count_seconds(time);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  return parts;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"  // the callers' formats are checked
std::string format_parts(const tm& parts, const char* format) {
  std::array<char, 64> text{};
  return {text.data(), ::strftime(text.data(), text.size(), format, &parts)};
}
#pragma GCC diagnostic pop

std::string format_utc(WallTime time) {
  const auto rest = time - std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{}.{:03}Z", format_parts(utc_parts(time), "%Y-%m-%dT%H:%M:%S"), rest.count());
}

std::string format_local(WallTime time) { return format_parts(local_parts(time), "%Y-%m-%d %H:%M:%S"); }

std::string format_to_come(WallTime time) {
  const tm parts = local_parts(time);
  return format_parts(parts, parts.tm_sec == 0 ? "%Y-%m-%d %H:%M" : "%Y-%m-%d %H:%M:%S");
}

std::string format_soon(WallTime time, WallTime now) {
  if (time - now >= std::chrono::hours{6 * 24})
    return format_to_come(time);
  const tm parts = local_parts(time);
  return format_parts(parts, parts.tm_sec == 0 ? "%a %H:%M" : "%a %H:%M:%S");
}

}  // namespace rlock
