#include "observe/ending.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/escape.h"
#include "base/signals.h"
#include "lock/answer.h"

namespace rlock::observe {
namespace {

using Kind = Ending::Kind;

constexpr std::array<std::pair<Kind, std::string_view>, 15> kind_names{{{Kind::exited, "exited"},
                                                                        {Kind::signalled, "signalled"},
                                                                        {Kind::released, "released"},
                                                                        {Kind::ended, "ended"},
                                                                        {Kind::evicted, "evicted"},
                                                                        {Kind::replaced, "replaced"},
                                                                        {Kind::lost, "lost"},
                                                                        {Kind::died, "died"},
                                                                        {Kind::timeout, "timeout"},
                                                                        {Kind::interrupted, "interrupted"},
                                                                        {Kind::hold, "hold"},
                                                                        {Kind::hold_ended, "hold ended"},
                                                                        {Kind::hold_replaced, "hold replaced"},
                                                                        {Kind::hold_over, "hold over"},
                                                                        {Kind::unknown, "unknown"}}};

constexpr std::string_view signal_prefix = "signal:";

Kind kind_named(std::string_view word) {
  const auto found =
      std::find_if(kind_names.begin(), kind_names.end(), [&](const auto& name) { return name.second == word; });
  return found == kind_names.end() ? Kind::unknown : found->first;
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

std::string Ending::brief() const {
  if (kind == Kind::exited)
    return std::to_string(number);
  return kind == Kind::signalled ? signal_name(number) : std::string{ending_name(kind)};
}

std::string Ending::in_words() const {
  if (kind == Kind::exited)
    return number == 0 ? "ok" : fmt::format("exit {}", number);
  return kind == Kind::signalled && number == SIGKILL ? "killed" : brief();
}

std::string Ending::describe() const { return by.empty() ? brief() : fmt::format("{} by {}", brief(), by); }

bool Ending::is_failure() const {
  const bool is_untold = kind == Kind::released || kind == Kind::ended || kind == Kind::unknown;
  return is_of_run() && !is_untold && !(kind == Kind::exited && number == 0);
}

std::string_view ending_name(Kind kind) {
  return std::find_if(kind_names.begin(), kind_names.end(), [&](const auto& name) { return name.first == kind; })
      ->second;
}

}  // namespace rlock::observe
