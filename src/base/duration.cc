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

constexpr std::array<Unit, 5> units{{{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Amount {
  double value = 0;
  bool is_whole = true;
};

/// Takes "12" or "1.5" off the front. It is parsed by hand because strtod() would accept "inf", "nan", "0x1p3" and the
/// locale's decimal point.
std::optional<Amount> take_amount(std::string_view& rest) {
  Amount amount;
  double place = 1;  // of the next digit after the point
  std::size_t i = 0;
  for (; i < rest.size() && (is_digit(rest[i]) || (rest[i] == '.' && amount.is_whole)); ++i) {
    if (rest[i] == '.') {
      amount.is_whole = false;
      continue;
    }
    const double digit = rest[i] - '0';
    if (!amount.is_whole)
      place /= 10;
    amount.value = amount.is_whole ? amount.value * 10 + digit : amount.value + digit * place;
  }
  if (i == 0 || rest[i - 1] == '.')
    return std::nullopt;
  rest.remove_prefix(i);
  return amount;
}

/// Takes the unit off the front; returns nullptr for an unknown one.
const Unit* take_unit(std::string_view& rest) {
  const auto length = std::min(rest.find_first_of(".0123456789"), rest.size());
  const auto* const unit =
      std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == rest.substr(0, length); });
  rest.remove_prefix(length);
  return unit == units.end() ? nullptr : unit;
}

}  // namespace

std::optional<Milliseconds> parse_duration(std::string_view text) {
  constexpr Unit seconds{"", 1e3};
  double ms = 0;
  const Unit* last = nullptr;
  for (std::string_view rest = text; last == nullptr || !rest.empty();) {
    const auto amount = take_amount(rest);
    if (!amount)
      return std::nullopt;
    const bool is_bare = last == nullptr && rest.empty();
    const Unit* const unit = is_bare ? &seconds : take_unit(rest);
    const bool is_in_order = unit != nullptr && (last == nullptr || unit->ms < last->ms);
    if (!is_in_order || (!amount->is_whole && !rest.empty()))
      return std::nullopt;
    ms += amount->value * unit->ms;
    last = unit;
  }
  // A little is subtracted so that 0.3 s, which has no exact double, is not rounded up to 301 ms.
  const double whole = std::ceil(ms - 1e-6);
  if (!(whole <= longest_ms))
    return std::nullopt;
  return Milliseconds{std::max<long long>(static_cast<long long>(whole), ms > 0 ? 1 : 0)};
}

std::string format_duration(Milliseconds duration) {
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

std::string format_limit(Milliseconds limit) {
  const long long ms = limit.count();
  auto unit = units.rbegin();
  while (unit->ms > 1 && (ms == 0 || ms % static_cast<long long>(unit->ms) != 0)) ++unit;
  return fmt::format("{}{}", ms / static_cast<long long>(unit->ms), unit->name);
}

}  // namespace rlock
