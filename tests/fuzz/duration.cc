// Any text given as a duration: refused, or what another way to compute it says, and text that people can read.
#include "base/duration.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace rlock;

long double unit_in_ms(std::string_view unit) {
  if (unit == "ms")
    return 1;
  if (unit.empty() || unit == "s")
    return 1e3L;
  if (unit == "m")
    return 60e3L;
  if (unit == "h")
    return 3600e3L;
  if (unit == "d")
    return 86400e3L;
  __builtin_trap();  // no such unit, and it was taken
}

/// The sum of its parts, "1h30m".
long double parts_in_ms(const std::string& text) {
  long double sum = 0;
  for (std::string rest = text; !rest.empty();) {
    char* unit = nullptr;
    const long double number = std::strtold(rest.c_str(), &unit);
    const std::string after{unit};
    const auto end = std::min(after.find_first_of("0123456789."), after.size());
    sum += number * unit_in_ms(std::string_view{after}.substr(0, end));
    rest = after.substr(end);
  }
  return sum;
}

void check(const std::string& text, Milliseconds read) {
  const long double expected = parts_in_ms(text);
  // Rounded up to whole ms; doubles are that exact up to 10 years.
  const auto ms = static_cast<long double>(read.count());
  if (ms < expected - 1e-4L || ms >= expected + 1.001L)
    __builtin_trap();
  if (parse_duration(std::to_string(read.count()) + "ms") != read)
    __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};
  const auto read = parse_duration(text);
  if (!read)
    return 0;
  if (text.find_first_not_of("0123456789.msdh") != std::string::npos)
    __builtin_trap();
  check(text, *read);
  if (const std::string shown = format_duration(*read); shown.empty() || shown.size() > 8)
    __builtin_trap();
  return 0;
}
