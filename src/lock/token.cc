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

bool is_hex(std::string_view text, std::size_t length) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == length && std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace

Token Token::random() { return Token{fmt::format("{:016x}{:016x}", random_bits(), random_bits())}; }

std::optional<Token> Token::parse(std::string_view text) {
  if (!is_hex(text, length))
    return std::nullopt;
  return Token{std::string{text}};
}

Level Level::random() { return Level{fmt::format("{:016x}", random_bits())}; }

std::optional<Level> Level::parse(std::string_view text) {
  if (!is_hex(text, length))
    return std::nullopt;
  return Level{std::string{text}};
}

}  // namespace rlock::lock
