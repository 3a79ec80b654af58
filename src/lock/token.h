#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rlock::lock {

/// The proof of holding a lock: 128 random bits in hexadecimal. It is a secret that only `acquire` prints.
class Token {
 public:
  static constexpr std::size_t length = 32;
  /// From getrandom(2). Throws Error{os} if that fails.
  static Token random();
  /// Returns nothing for anything but 32 lower-case hexadecimal digits.
  static std::optional<Token> parse(std::string_view text);

  const std::string& text() const { return text_; }
  friend bool operator==(const Token&, const Token&) = default;

 private:
  explicit Token(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

/// One taker under a token: 64 random bits. A nested run shares the token of the enclosing run and has a level of its
/// own; the lock is free when no level is left. Because a level counts only once, any request may be repeated.
class Level {
 public:
  static constexpr std::size_t length = 16;

  static Level random();
  /// Returns nothing for anything but 16 lower-case hexadecimal digits.
  static std::optional<Level> parse(std::string_view text);

  const std::string& text() const { return text_; }

 private:
  explicit Level(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

/// The number of one acquisition, larger than that of every earlier one of the same lock: microseconds of the server's
/// clock unless that was set back. Below 2^53. A resource that refuses a fence smaller than one it has seen is safe
/// from a holder that has lost its lock without knowing.
struct Fence {
  long long value = 0;

  std::string text() const { return std::to_string(value); }
  friend auto operator<=>(Fence, Fence) = default;
};

}  // namespace rlock::lock
