#include "base/timestamp.h"

#include <fmt/format.h>
#include <time.h>

namespace rlock {

WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::string format_utc(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto count = static_cast<time_t>(seconds.time_since_epoch().count());
  tm parts{};
  ::gmtime_r(&count, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                     parts.tm_year + 1900,
                     parts.tm_mon + 1,
                     parts.tm_mday,
                     parts.tm_hour,
                     parts.tm_min,
                     parts.tm_sec,
                     (time - seconds).count());
}

std::string format_local(WallTime time) {
  const auto count = static_cast<time_t>(std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
  tm parts{};
  ::localtime_r(&count, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
                     parts.tm_year + 1900,
                     parts.tm_mon + 1,
                     parts.tm_mday,
                     parts.tm_hour,
                     parts.tm_min,
                     parts.tm_sec);
}

}  // namespace rlock
