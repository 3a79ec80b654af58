// Any text given as a duration: refused, or what another way to compute it says, and text that people can read.
#include "base/duration.h"

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

void check(const std::string& text, Milliseconds read) {
  char* unit = nullptr;
  const long double expected = std::strtold(text.c_str(), &unit) * unit_in_ms(unit);
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
