#include "lock/answer.h"

#include <algorithm>
#include <charconv>

namespace rlock::lock {
namespace {

constexpr long long longest_unconfirmed = 60'000;

std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

/// Nothing for what is no whole number, or over `most`.
std::optional<long long> take_number(std::string_view& text, long long most) {
  const std::string_view word = take_word(text);
  long long value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc{} && end == word.data() + word.size();
  return whole && value >= 0 && value <= most ? std::optional{value} : std::nullopt;
}

Milliseconds read_ms(Fields& fields) { return Milliseconds{fields.number()}; }

Answer read_busy(Fields& fields, BootClock::time_point sent) {
  return Busy{.sleep = read_ms(fields),
              .ticket = fields.text(),
              .held = read_ms(fields),
              .lease = read_ms(fields),
              .cooling = read_ms(fields),
              .holder = Owner::decode(fields.text()),
              .asked = {.sent = sent, .answered = fields.text()}};
}

Answer read_foreign(Fields& fields, BootClock::time_point sent) {
  Foreign foreign{.sleep = read_ms(fields),
                  .ticket = fields.text(),
                  .type = fields.text(),
                  .value = fields.text(),
                  .expires_in = {},
                  .asked = {}};
  const Milliseconds ttl = read_ms(fields);
  if (ttl.count() >= 0)
    foreign.expires_in = ttl;
  foreign.asked = {.sent = sent, .answered = fields.text()};
  return foreign;
}

Answer read_granted(Fields& fields, BootClock::time_point sent) {
  return Granted{
      .fence = {static_cast<std::uint64_t>(fields.number())}, .slot = static_cast<int>(fields.number()), .sent = sent};
}

}  // namespace

Answer read_answer(Fields fields, BootClock::time_point sent) {
  if (fields.outcome() == "granted")
    return read_granted(fields, sent);
  if (fields.outcome() == "busy")
    return read_busy(fields, sent);
  if (fields.outcome() == "foreign")
    return read_foreign(fields, sent);
  if (fields.outcome() == "mismatch")
    return Mismatch{{static_cast<int>(fields.number())}};
  if (fields.outcome() == "upgrade")
    return Upgrade{};
  if (fields.outcome() == "lost")
    return Lost{};
  fields.unexpected();
}

std::optional<Granted> read_hand_over(std::string_view message, const Asked& asked) {
  if (take_word(message) != "granted")
    return std::nullopt;
  const auto fence = take_number(message, 1LL << 53);
  const auto slot = take_number(message, 1 << 20);
  const auto lease = take_number(message, longest_unconfirmed);
  const bool is_about_that = take_word(message) == asked.answered;
  const auto since = take_number(message, longest_unconfirmed);
  if (!fence || !slot || !lease || !is_about_that || !since)
    return std::nullopt;
  const Milliseconds passed{*since - *since / 100 - 2};
  return Granted{.fence = {static_cast<std::uint64_t>(*fence)},
                 .slot = static_cast<int>(*slot),
                 .sent = std::min(asked.sent + passed, BootClock::now()),
                 .unconfirmed = Milliseconds{*lease}};
}

}  // namespace rlock::lock
