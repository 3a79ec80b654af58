#include "observe/ending.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/escape.h"
#include "base/signals.h"
#include "lock/answer.h"

namespace rlock::observe {
namespace {

using Kind = Ending::Kind;

/// In the order of the enumerators.
constexpr std::string_view kind_names[] = {"exited",
                                           "signalled",
                                           "released",
                                           "ended",
                                           "evicted",
                                           "replaced",
                                           "lost",
                                           "died",
                                           "timeout",
                                           "interrupted",
                                           "hold",
                                           "hold ended",
                                           "hold replaced",
                                           "hold over",
                                           "unknown"};

constexpr std::string_view signal_prefix = "signal:";

Kind kind_named(std::string_view word) {
  const auto* const found = std::find(std::begin(kind_names), std::end(kind_names), word);
  return found == std::end(kind_names) ? Kind::unknown : static_cast<Kind>(found - std::begin(kind_names));
}

}  // namespace

Ending Ending::read(std::string_view text) {
  if (text == "-")
    return {.kind = Kind::released};
  if (const auto status = lock::WordReader{text}.number(); status && *status <= 255)
    return {.kind = Kind::exited, .number = static_cast<int>(*status)};
  if (text.starts_with(signal_prefix)) {
    const auto number = lock::WordReader{text.substr(signal_prefix.size())}.number();
    return {.kind = Kind::signalled, .number = number && *number < 128 ? static_cast<int>(*number) : 0};
  }
  const auto comma = text.find(',');
  Ending ending{.kind = kind_named(text.substr(0, comma))};
  if (ending.kind == Kind::exited || ending.kind == Kind::signalled || !ending.is_of_run())
    ending.kind = Kind::unknown;
  if (comma != std::string_view::npos)
    ending.by = percent_decode(text.substr(comma + 1)).value_or("?");
  return ending;
}

std::optional<int> Ending::status() const {
  if (kind == Kind::signalled)
    return static_cast<int>(killed_by(number));
  return kind == Kind::exited ? std::optional{number} : std::nullopt;
}

std::string Ending::brief() const {
  if (kind == Kind::exited)
    return std::to_string(number);
  return kind == Kind::signalled ? signal_name(number) : std::string{ending_name(kind)};
}

std::string Ending::in_words() const {
  if (kind == Kind::exited)
    return number == 0 ? "ok" : fmt::format("exit {}", number);
  return brief();
}

std::string Ending::describe() const { return by.empty() ? brief() : fmt::format("{} by {}", brief(), by); }

bool Ending::is_failure() const {
  const bool is_untold = kind == Kind::released || kind == Kind::ended || kind == Kind::unknown;
  return is_of_run() && !is_untold && !(kind == Kind::exited && number == 0);
}

bool Ending::needs_attention() const { return is_failure() && kind != Kind::replaced && kind != Kind::interrupted; }

std::string_view ending_name(Kind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

}  // namespace rlock::observe
