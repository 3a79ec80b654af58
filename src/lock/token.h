#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rlock::lock {

/// Random bits in hexadecimal, so many that nobody guesses them.
template <std::size_t digits>
class RandomId {
 public:
  static constexpr std::size_t length = digits;
  /// From getrandom(2). Throws Error{os} if that fails.
  static RandomId random();
  /// Returns nothing for anything but `digits` lower-case hexadecimal digits.
  static std::optional<RandomId> parse(std::string_view text);

  const std::string& text() const { return text_; }
  friend bool operator==(const RandomId&, const RandomId&) = default;

 private:
  explicit RandomId(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

/// The proof of holding a lock, of 128 bits. It is a secret that only `acquire` prints.
using Token = RandomId<32>;

/// One taker under a token, of 64 bits. A nested run shares the token of the enclosing run and has a level of its own;
/// the lock is free when no level is left. Because a level counts only once, any request may be repeated.
using Level = RandomId<16>;

/// The number of one acquisition, larger than that of every earlier one of the same lock: microseconds of the server's
/// clock unless that was set back. Below 2^53. A resource that refuses a fence smaller than one it has seen is safe
/// from a holder that has lost its lock without knowing.
struct Fence {
  long long value = 0;

  std::string text() const { return std::to_string(value); }
  friend auto operator<=>(Fence, Fence) = default;
};

// What a holder tells the runs inside it, in RLOCK_HELD: "KEY=TOKEN" for each lock that it or an enclosing run holds,
// separated by spaces, the innermost first.

std::string held_entry(const std::string& name, const Token& token);

/// The list with one more entry, which replaces an earlier one of the same name.
std::string held_with(std::string_view held, std::string_view entry);

/// The token with which an enclosing run holds that lock. Malformed entries are ignored.
std::optional<Token> inherited_token(std::string_view held, const std::string& name);

}  // namespace rlock::lock
