#include "cli/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/signals.h"
#include "base/word.h"
#include "redis/address.h"

namespace rlock::cli {
namespace {

/// How many letters must be inserted, deleted, changed or swapped with their neighbour to turn one word into the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), 0UL);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row{i};
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      std::size_t best = std::min({change, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, before_last[j - 2] + 1);
      row.push_back(best);
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

constexpr std::size_t most_bytes = 1024;

struct UnitName {
  std::string_view name, unit;
};

/// What people call the units, in the plural.
constexpr std::array<UnitName, 11> unit_names{{{"milliseconds", "ms"},
                                               {"millis", "ms"},
                                               {"msecs", "ms"},
                                               {"seconds", "s"},
                                               {"secs", "s"},
                                               {"minutes", "m"},
                                               {"mins", "m"},
                                               {"hours", "h"},
                                               {"hrs", "h"},
                                               {"days", "d"},
                                               {"weeks", "w"}}};

/// The unit with that name, in upper or lower case; empty where there is none.
std::string_view unit_called(std::string_view written) {
  const std::string name = lower(written);
  const auto* const found = std::find_if(unit_names.begin(), unit_names.end(), [&](const UnitName& u) {
    return name == u.unit || name == u.name || name + 's' == u.name;
  });
  return found == unit_names.end() ? "" : found->unit;
}

/// Removes the characters at the beginning that are among these, or that are not, and returns them.
std::string_view take_characters(std::string_view& rest, std::string_view these, bool among) {
  const auto end = std::min(among ? rest.find_first_not_of(these) : rest.find_first_of(these), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end);
  return taken;
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates, std::string_view prefix) {
  constexpr std::size_t longest = 40;  // anything longer is not a mistyped word
  if (word.size() > longest)
    return {};
  const auto slips = [word](std::string_view candidate) {
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    return begins ? 1 : distance(word, candidate);
  };
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t count = slips(candidate);
    if (count < least && count < candidate.size()) {
      least = count;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : fmt::format("; did you mean {}{}?", prefix, nearest);
}

bool has_form_of_duration(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }, '0');
  return parse_duration(text).has_value();
}

std::string meant_duration(std::string_view text) {
  std::string meant;
  while (!text.empty()) {
    std::string amount{take_characters(text, "0123456789.", true)};
    take_characters(text, " ", true);
    const std::string name{take_characters(text, "0123456789. ", false)};
    take_characters(text, " ", true);
    std::string_view unit = name.empty() && meant.ends_with('h') ? "m" : unit_called(name);
    if (unit == "w") {
      const auto weeks = parse_number(amount, 0LL, 1000LL);
      amount = weeks ? std::to_string(7 * *weeks) : "";
      unit = "d";
    }
    meant.append(amount).append(unit);
    if (amount.empty() || unit.empty())
      return {};
  }
  return parse_duration(meant) ? meant : "";
}

/// Masks passwords, since a rejected value may be a URL in the wrong place.
void Value::refuse(std::string_view why) const {
  throw Error{fault, fmt::format("{}: {}", origin, redis::mask_password(why))};
}

void Value::check_file() const {
  if (text.empty())
    throw Error{ExitCode::config, fmt::format("{} is empty", origin)};
}

void Value::refuse_word(std::span<const std::string_view> words, std::string_view others) const {
  refuse(fmt::format("'{}' is not one of {}{}{}", text, fmt::join(words, ", "), others, did_you_mean(text, words)));
}

Milliseconds Value::duration(Milliseconds low, Milliseconds high, std::string_view hint) const {
  const auto parsed = parse_duration(text);
  if (!parsed && !has_form_of_duration(text)) {
    const std::string meant = meant_duration(text);
    refuse(fmt::format("'{}' is not a duration such as 30, 1.5s, 250ms, 1h30m or 7d{}",
                       text,
                       meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  }
  if (!parsed || *parsed > high)
    refuse(fmt::format("{} is too long; it must be at most {}{}", text, format_limit(high), hint));
  if (*parsed < low)
    refuse(fmt::format("{} is too short; it must be at least {}", text, format_limit(low)));
  return *parsed;
}

long long Value::number(long long low, long long high) const {
  const auto value = parse_number(text, low, high);
  if (!value)
    refuse(fmt::format("'{}' is not a number from {} to {}{}",
                       text,
                       low,
                       high,
                       text == "$" ? "; in a Makefile write $$ for each $" : ""));
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
    refuse(fmt::format("'{}' is neither yes nor no; write one of them", text));
  return text == "yes";
}

lock::Token Value::token() const {
  const auto token = lock::Token::parse(text);
  if (text.empty())
    refuse("it is empty; was the lock acquired?");
  if (!token)
    refuse("not a token; acquire prints one as 32 hexadecimal digits");
  return *token;
}

const std::string& Value::bytes() const {
  if (text.size() > most_bytes)
    refuse(fmt::format("it is {} bytes long; at most {} are allowed", text.size(), most_bytes));
  return text;
}

}  // namespace rlock::cli
