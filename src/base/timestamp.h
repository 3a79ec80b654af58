#pragma once

#include <chrono>
#include <string>

namespace rlock {

using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

/// By this machine's clock.
WallTime wall_now();

/// RFC 3339 in UTC with milliseconds: "2026-11-20T21:02:18.250Z".
std::string format_utc(WallTime time);

/// For people, in the local time zone: "2026-11-20 22:02:18".
std::string format_local(WallTime time);

}  // namespace rlock
