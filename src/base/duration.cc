#include "base/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace rlock {
namespace {

constexpr double longest_ms = 10.0 * 365 * 24 * 3600 * 1000;

struct Unit {
  std::string_view name;
  double ms;
};

constexpr std::array<Unit, 6> units{{{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<Milliseconds> parse_duration(std::string_view text) {
  // By hand: strtod() would take "inf", "nan", "0x1p3" and the decimal point of the locale.
  double value = 0;
  double place = 1;  // of the next digit after the point
  bool any = false;
  bool fraction = false;
  std::size_t i = 0;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !fraction)); ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    any = true;
    const double digit = text[i] - '0';
    if (fraction)
      place /= 10;
    value = fraction ? value + digit * place : value * 10 + digit;
  }
  const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == text.substr(i); });
  if (!any || text[i - 1] == '.' || unit == units.end())
    return std::nullopt;
  // Less a hair, so that 0.3 s, which has no exact double, is not rounded up to 301 ms.
  const double ms = std::ceil(value * unit->ms - 1e-6);
  if (!(ms <= longest_ms))
    return std::nullopt;
  return Milliseconds{std::max<long long>(static_cast<long long>(ms), value > 0 ? 1 : 0)};
}

std::string format_duration(Milliseconds duration) {
  using namespace std::chrono;
  const auto ms = std::max<long long>(0, duration.count());
  if (ms < 1000)
    return fmt::format("{}ms", ms);
  const auto s = ms / 1000;
  if (s < 60)
    return ms < 10000 && ms % 1000 >= 100 ? fmt::format("{}.{}s", s, ms % 1000 / 100) : fmt::format("{}s", s);
  if (s < 3600)
    return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400)
    return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
  return fmt::format("{}d{:02}h", s / 86400, s % 86400 / 3600);
}

}  // namespace rlock
