#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/duration.h"
#include "base/timestamp.h"
#include "lock/owner.h"

namespace rlock::observe {

/// Reads an untrusted answer word by word from left to right. A missing word reads as empty or zero, and no number is
/// so large that a sum of several could overflow.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : rest_(text) {}

  std::string_view word();
  /// Empty unless the next word is a whole number from 0 to largest_whole.
  std::optional<long long> number();
  long long number_or_zero() { return number().value_or(0); }
  /// Of seats, slots or levels, which are fewer than a million.
  int count();
  Milliseconds duration() { return Milliseconds{number_or_zero()}; }
  WallTime time() { return WallTime{duration()}; }
  /// Reads the six words of an owner.
  lock::Owner owner();
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// The value of `name=value` among the words; empty where there is no such word.
std::optional<std::string> find_extra(std::string_view words, std::string_view name);

}  // namespace rlock::observe
