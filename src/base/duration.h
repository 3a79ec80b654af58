#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

using Milliseconds = std::chrono::milliseconds;

/// Reads "30", "1.5s", "250ms", "7d", and what format_duration() makes, "1h30m": units from large to small, each once.
/// Only the last part may have a fraction; a bare number is in seconds. Anything above zero becomes at least 1 ms.
/// Returns nothing for text that is empty, negative, not a number, in an unknown unit or above 10 years.
std::optional<Milliseconds> parse_duration(std::string_view text);

/// For people: "350ms", "22s", "4m12s", "3h05m", "2d04h".
std::string format_duration(Milliseconds duration);

/// As a user would write it: "7d" where format_duration() says "7d00h".
std::string format_limit(Milliseconds limit);

}  // namespace rlock
