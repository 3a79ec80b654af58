#include "lock/token.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace rlock::lock {
namespace {

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  // Up to 256 bytes are given whole or not at all.
  while (::getrandom(&bits, sizeof bits, 0) != sizeof bits) {
    if (errno != EINTR)
      throw os_error("getrandom", errno);
  }
  return bits;
}

}  // namespace

Token Token::random() { return Token{fmt::format("{:016x}{:016x}", random_bits(), random_bits())}; }

std::optional<Token> Token::parse(std::string_view text) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != 32 || !std::all_of(text.begin(), text.end(), is_hex))
    return std::nullopt;
  return Token{std::string{text}};
}

Level Level::random() { return Level{fmt::format("{:016x}", random_bits())}; }

}  // namespace rlock::lock
