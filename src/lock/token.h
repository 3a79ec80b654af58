#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock::lock {

/// Proof of holding: 128 random bits in hexadecimal. A secret; never shown but by `acquire`.
class Token {
 public:
  static constexpr std::size_t length = 32;
  /// From getrandom(2).
  static Token random();
  /// Nothing for anything but 32 lower-case hexadecimal digits.
  static std::optional<Token> parse(std::string_view text);

  const std::string& text() const { return text_; }
  friend bool operator==(const Token&, const Token&) = default;

 private:
  explicit Token(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

/// One taker under a token: 64 random bits. A nested run shares the token of the run around it and has a level of its
/// own, and the lock is free when no level is left. Because a level counts once, any request may be repeated.
class Level {
 public:
  static constexpr std::size_t length = 16;

  static Level random();
  /// Nothing for anything but 16 lower-case hexadecimal digits.
  static std::optional<Level> parse(std::string_view text);

  const std::string& text() const { return text_; }

 private:
  explicit Level(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

/// Number of one acquisition, larger than that of every earlier one of the same lock; microseconds of the server's
/// clock where that clock goes forward. Below 2^53. A resource that refuses a smaller fence than it has seen is safe
/// from a holder that lost its lock unawares.
struct Fence {
  std::uint64_t value = 0;
  friend bool operator==(Fence, Fence) = default;
};

}  // namespace rlock::lock
