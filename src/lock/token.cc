#include "lock/token.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/error.h"

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

}  // namespace rlock::lock
