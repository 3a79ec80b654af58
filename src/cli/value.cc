#include "cli/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/signals.h"
#include "cli/suggest.h"
#include "redis/masking.h"

namespace rlock::cli {
namespace {

constexpr std::size_t most_bytes = 1024;

/// Whether only the size of a duration can be wrong: with other digits it would be one.
bool has_form_of_duration(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }, '0');
  return parse_duration(text).has_value();
}

}  // namespace

std::string format_limit(Milliseconds limit) {
  constexpr std::array<std::pair<std::string_view, long long>, 4> units{
      {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}}};
  const long long ms = limit.count();
  for (const auto& [name, size] : units) {
    if (ms >= size && ms % size == 0)
      return fmt::format("{}{}", ms / size, name);
  }
  return fmt::format("{}ms", ms);
}

/// Masks passwords, since a rejected value may be a URL in the wrong place.
void Value::refuse(std::string_view why) const {
  throw Error{fault, fmt::format("{}: {}", origin, redis::mask_password(why))};
}

void Value::check_file() const {
  if (text.empty())
    throw Error{ExitCode::config, fmt::format("{} is empty", origin)};
}

void Value::refuse_word(std::span<const std::string_view> words) const {
  refuse(fmt::format("'{}' is not one of {}{}", text, fmt::join(words, ", "), did_you_mean(text, words)));
}

Milliseconds Value::duration(Milliseconds low, Milliseconds high, std::string_view hint) const {
  const auto parsed = parse_duration(text);
  if (!parsed && !has_form_of_duration(text))
    refuse(fmt::format("'{}' is not a duration such as 30, 1.5s, 250ms, 1h30m or 7d", text));
  if (!parsed || *parsed > high)
    refuse(fmt::format("{} is too long; it must be at most {}{}", text, format_limit(high), hint));
  if (*parsed < low)
    refuse(fmt::format("{} is too short; it must be at least {}", text, format_limit(low)));
  return *parsed;
}

long long Value::number(long long low, long long high) const {
  const auto value = parse_number(text, low, high);
  if (!value)
    refuse(fmt::format("'{}' is not a number from {} to {}", text, low, high));
  return *value;
}

int Value::signal() const {
  std::string name = text;
  for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const auto number = parse_signal(name);
  if (!number)
    refuse(fmt::format("'{}' is not a signal; write a name such as TERM, INT or HUP, or a number{}",
                       text,
                       did_you_mean(name, common_signals)));
  return *number;
}

bool Value::flag() const {
  if (text != "yes" && text != "no")
    refuse(fmt::format("'{}' is neither yes nor no", text));
  return text == "yes";
}

const std::string& Value::bytes() const {
  if (text.size() > most_bytes)
    refuse(fmt::format("it is {} bytes long; at most {} are allowed", text.size(), most_bytes));
  return text;
}

}  // namespace rlock::cli
