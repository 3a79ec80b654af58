#include "lock/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/escape.h"
#include "base/sha1.h"
#include "lock/lease.h"

namespace rlock::lock {
namespace {

constexpr long long largest_count = 1'000'000;
constexpr int words_of_owner = 6;

/// An ID or description as the scripts keep it, percent-encoded; one that cannot be decoded stays as it is.
std::string decode_word(std::string_view word) { return percent_decode(word).value_or(std::string{word}); }

constexpr long long longest_unconfirmed = 5'000;  // SHORT of clock.lua
constexpr Milliseconds shortest_lease{500};       // of any --ttl
constexpr long long longest_sleep = 60'000;       // LONGEST of queue.lua
constexpr long long longest_since = 2 * longest_sleep;
constexpr long long most_slots = 1 << 20;      // more than --slots allows
constexpr long long longest_time = 1LL << 42;  // in ms since 1970 this is the year 2109
constexpr long long largest_fence = longest_time * 1'000;

std::optional<int> read_slot(std::string_view word) { return parse_number(word, 0, static_cast<int>(most_slots)); }

/// A duration, or a time of the server. One that no honest server sends is limited to what we can safely calculate
/// with.
Milliseconds read_ms(Fields& fields) { return Milliseconds{std::clamp(fields.number(), 0LL, longest_time)}; }

/// No script tells anybody to sleep longer than a message may.
Milliseconds read_pause(Fields& fields) { return std::min(read_ms(fields), Milliseconds{longest_sleep}); }

Asked read_asked(Fields& fields, BootClock::time_point sent) { return {.sent = sent, .answered = fields.text()}; }

Capacity read_capacity(Fields& fields) { return {static_cast<int>(std::clamp(fields.number(), 0LL, most_slots))}; }

/// Servers of a quorum say it in milliseconds, -1 for none.
std::optional<Milliseconds> read_last_success(Fields& fields) {
  const long long ago = fields.at_end() ? -1 : fields.number();
  return ago >= 0 ? std::optional{Milliseconds{std::min(ago, longest_time)}} : std::nullopt;
}

/// Reads "granted_ms ended_ms now_ms", and returns how long ago the first two are.
std::pair<Milliseconds, Milliseconds> read_ages(Fields& fields) {
  const Milliseconds granted = read_ms(fields);
  const Milliseconds ended = read_ms(fields);
  const Milliseconds now = read_ms(fields);
  return {std::max(Milliseconds{0}, now - granted), std::max(Milliseconds{0}, now - ended)};
}

Answer read_exhausted(Fields& fields) {
  Failures failures{.count = fields.number(), .end = fields.text()};
  const auto [granted_ago, ended_ago] = read_ages(fields);
  return Exhausted{.failures = std::move(failures),
                   .granted_ago = granted_ago,
                   .ended_ago = ended_ago,
                   .host = decode_word(fields.text())};
}

Answer read_busy(Fields& fields, BootClock::time_point sent) {
  Busy busy{.sleep = read_pause(fields),
            .ticket = fields.text(),
            .held = read_ms(fields),
            .lease = read_ms(fields),
            .cooling = read_ms(fields),
            .holder = {},
            .asked = {},
            .in_force = {}};
  const std::string holder = fields.text();
  WordReader words{holder};
  busy.holder = words.owner();
  busy.failures = parse_failures(words.rest());
  busy.asked = read_asked(fields, sent);
  busy.in_force = read_capacity(fields);
  busy.place = fields.number();
  busy.waiting = fields.number();
  busy.last_success = read_last_success(fields);
  return busy;
}

Answer read_on_hold(Fields& fields, BootClock::time_point sent) {
  OnHold answer{.sleep = read_pause(fields),
                .ticket = fields.text(),
                .hold = read_hold(fields),
                .now = {},
                .asked = read_asked(fields, sent)};
  answer.now = WallTime{Milliseconds{parse_number(answer.asked.answered, 0LL, longest_time).value_or(0)}};
  answer.place = fields.number();
  answer.last_success = read_last_success(fields);
  return answer;
}

Answer read_foreign(Fields& fields, BootClock::time_point sent) {
  Foreign foreign{.sleep = read_pause(fields),
                  .ticket = fields.text(),
                  .type = fields.text(),
                  .value = fields.text(),
                  .expires_in = {},
                  .asked = {}};
  const long long ttl = fields.number();
  if (ttl >= 0)
    foreign.expires_in = Milliseconds{std::min(ttl, longest_time)};
  foreign.asked = read_asked(fields, sent);
  foreign.place = fields.number();
  return foreign;
}

/// A lease shorter than `ttl` is unconfirmed until its first renewal.
Answer read_granted(Fields& fields, BootClock::time_point sent, Milliseconds ttl) {
  const auto fence = read_fence(fields.text());
  const auto slot = read_slot(fields.text());
  const Milliseconds lease = read_ms(fields);
  if (!fence || !slot || lease < shortest_lease)
    fields.unexpected();
  Granted granted{.fence = *fence, .slot = *slot, .sent = sent};
  if (lease < ttl)
    granted.unconfirmed = lease;
  granted.last_success = read_last_success(fields);
  return granted;
}

Answer read_done(Fields& fields) {
  const auto [granted_ago, ended_ago] = read_ages(fields);
  return Done{.granted_ago = granted_ago,
              .ended_ago = ended_ago,
              .by = Owner::decode(fields.text()),
              .id = decode_word(fields.text())};
}

Target::State read_state(std::string_view word) {
  if (word == "cooling")
    return Target::State::cooling;
  if (word == "marked")
    return Target::State::marked;
  return word == "removed" ? Target::State::removed : Target::State::held;
}

}  // namespace

std::optional<Fence> read_fence(std::string_view word) {
  const auto value = parse_number(word, 0LL, largest_fence);
  return value ? std::optional{Fence{*value}} : std::nullopt;
}

std::optional<Failures> parse_failures(std::string_view text) {
  const auto count = parse_number(take_word(text, ','), 1LL, largest_count);
  return count ? std::optional{Failures{.count = *count, .end = std::string{text}}} : std::nullopt;
}

std::string_view WordReader::word() { return take_word(rest_); }

std::optional<long long> WordReader::number(long long most) { return parse_number(word(), 0LL, most); }

int WordReader::count() { return static_cast<int>(std::min(number_or_zero(), largest_count)); }

WallTime WordReader::time() { return WallTime{Milliseconds{std::min(number_or_zero(), longest_time)}}; }

Owner WordReader::owner() {
  const std::string_view begin = rest_;
  for (int i = 0; i < words_of_owner; ++i) word();
  return Owner::decode(begin.substr(0, begin.size() - rest_.size()));
}

std::optional<std::string> find_extra(std::string_view words, std::string_view name) {
  WordReader rest{words};
  while (!rest.rest().empty()) {
    const std::string_view word = rest.word();
    if (word.starts_with(name) && word.substr(name.size()).starts_with('='))
      return std::string{word.substr(name.size() + 1)};
  }
  return std::nullopt;
}

Eviction read_eviction(Fields& fields) {
  const auto kind = fields.text() == "replaced" ? Eviction::Kind::replaced : Eviction::Kind::forced;
  return {.kind = kind, .by = decode_word(fields.text())};
}

Answer read_answer(Fields fields, BootClock::time_point sent, Milliseconds ttl) {
  const std::string& outcome = fields.outcome();
  if (outcome == "granted")
    return read_granted(fields, sent, ttl);
  if (outcome == "busy")
    return read_busy(fields, sent);
  if (outcome == "hold")
    return read_on_hold(fields, sent);
  if (outcome == "foreign")
    return read_foreign(fields, sent);
  if (outcome == "full")
    return Full{fields.number()};
  if (outcome == "done")
    return read_done(fields);
  if (outcome == "attempts")
    return read_exhausted(fields);
  if (outcome == "superseded")
    return Superseded{Owner::decode(fields.text())};
  if (outcome == "cancelled")
    return Cancelled{};
  if (outcome == "upgrade")
    return Upgrade{read_capacity(fields)};
  if (outcome == "once")
    return OtherOnce{decode_word(fields.text())};
  if (outcome == "evicted")
    return Evicted{read_eviction(fields)};
  if (outcome == "lost")
    return Lost{};
  fields.unexpected();
}

Release read_release(Fields fields) {
  Release release;
  if (fields.outcome() == "kept")
    release.kind = Release::Kind::kept;
  if (fields.outcome() == "cooling")
    release.kind = Release::Kind::cooling;
  try {
    if (release.kind == Release::Kind::cooling)
      release.cooling = read_ms(fields);
    if (release.kind != Release::Kind::kept && !fields.at_end())
      release.failed_attempts = std::clamp(fields.number(), 0LL, largest_count);
  } catch (const Error&) {
    // It is released all the same.
  }
  return release;
}

Hold read_hold(Fields& fields) { return {.until = WallTime{read_ms(fields)}, .by = Owner::decode(fields.text())}; }

NewHold read_new_hold(Fields fields, const Owner& by) {
  if (fields.outcome() == "kept")
    return {.hold = read_hold(fields)};
  NewHold made{.hold = {.until = WallTime{read_ms(fields)}, .by = by}};
  (void)read_ms(fields);  // the server's time
  if (!fields.at_end())
    made.replaced = read_hold(fields);
  return made;
}

Target read_target(const std::string& line) {
  WordReader words{line};
  Target target;
  target.fence = {words.number_or_zero()};
  target.state = read_state(words.word());
  target.lease = std::min(words.duration(), Milliseconds{longest_time});
  target.has_keeper = words.word() == "1";
  target.owner = words.owner();
  target.owner.stays = target.owner.stays && target.has_keeper && target.state != Target::State::cooling;
  return target;
}

std::optional<Granted> read_hand_over(std::string_view message, const Asked& asked, const Token& token) {
  WordReader words{message};
  if (words.word() != "granted")
    return std::nullopt;
  const std::string_view fence_word = words.word();
  const auto fence = read_fence(fence_word);
  const auto slot = read_slot(words.word());
  const auto lease = words.number(longest_unconfirmed);
  const bool is_about_that = words.word() == asked.answered;
  const auto since = words.number(longest_since);
  const std::string proof = sha1_hex(fmt::format("{}:{}", token.text(), fence_word));
  if (!fence || !slot || lease < shortest_lease.count() || !is_about_that || !since || words.word() != proof)
    return std::nullopt;
  const auto granted_at = asked.sent + trusted(Milliseconds{*since});
  if (granted_at > BootClock::now())  // the server's clock was set forward
    return std::nullopt;
  return Granted{.fence = *fence, .slot = *slot, .sent = granted_at, .unconfirmed = Milliseconds{*lease}};
}

Milliseconds read_sleep(std::string_view message) {
  return Milliseconds{WordReader{message}.number(longest_sleep).value_or(0)};
}

}  // namespace rlock::lock
