#include "cli/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/number.h"
#include "cli/suggest.h"
#include "redis/masking.h"

namespace rlock::cli {
namespace {

constexpr std::size_t most_bytes = 1024;

}  // namespace

/// Masks passwords, since a rejected value may be a URL in the wrong place.
void Value::refuse(std::string_view why) const {
  throw Error{fault, fmt::format("{}: {}", origin, redis::mask_password(why))};
}

void Value::refuse_word(std::span<const std::string_view> words) const {
  refuse(fmt::format("'{}' is not one of {}{}", text, fmt::join(words, ", "), did_you_mean(text, words)));
}

Milliseconds Value::duration() const {
  const auto parsed = parse_duration(text);
  if (!parsed)
    refuse(fmt::format("'{}' is not a duration such as 30, 1.5s, 250ms, 1h30m or 7d", text));
  return *parsed;
}

Milliseconds Value::duration(Milliseconds low, Milliseconds high, std::string_view hint) const {
  const Milliseconds parsed = duration();
  if (parsed < low)
    refuse(fmt::format("{} is too short; it must be at least {}", text, format_duration(low)));
  if (parsed > high)
    refuse(fmt::format("{} is too long; it must be at most {}{}", text, format_duration(high), hint));
  return parsed;
}

long long Value::number(long long low, long long high) const {
  const auto value = parse_number(text, low, high);
  if (!value)
    refuse(fmt::format("'{}' is not a number from {} to {}", text, low, high));
  return *value;
}

bool Value::flag() const {
  if (text != "yes" && text != "no")
    refuse("write yes or no");
  return text == "yes";
}

const std::string& Value::bytes() const {
  if (text.size() > most_bytes)
    refuse(fmt::format("it is {} bytes long; at most {} are allowed", text.size(), most_bytes));
  return text;
}

}  // namespace rlock::cli
