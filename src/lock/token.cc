#include "lock/token.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/error.h"
#include "base/escape.h"
#include "base/word.h"

namespace rlock::lock {
namespace {

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  // getrandom() returns up to 256 bytes in full or not at all.
  while (::getrandom(&bits, sizeof bits, 0) != sizeof bits) {
    if (errno != EINTR)
      throw os_error("getrandom", errno);
  }
  return bits;
}

}  // namespace

template <std::size_t digits>
RandomId<digits> RandomId<digits>::random() {
  std::string text;
  while (text.size() < digits) text += fmt::format("{:016x}", random_bits());
  return RandomId{std::move(text)};
}

template <std::size_t digits>
std::optional<RandomId<digits>> RandomId<digits>::parse(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != digits || !std::all_of(text.begin(), text.end(), is_digit))
    return std::nullopt;
  return RandomId{std::string{text}};
}

template class RandomId<Token::length>;
template class RandomId<Level::length>;

std::string held_entry(const std::string& name, const Token& token) {
  return percent_encode(name) + "=" + token.text();
}

std::string held_with(std::string_view held, std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('=') + 1);
  std::string all{entry};
  while (!held.empty()) {
    const std::string_view other = take_word(held);
    if (!other.empty() && !other.starts_with(name))
      all.append(" ").append(other);
  }
  return all;
}

std::optional<Token> inherited_token(std::string_view held, const std::string& name) {
  while (!held.empty()) {
    std::string_view token = take_word(held);
    if (percent_decode(take_word(token, '=')) != name)
      continue;
    if (auto parsed = Token::parse(token))
      return parsed;
  }
  return std::nullopt;
}

}  // namespace rlock::lock
