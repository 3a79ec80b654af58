#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lock/token.h"

namespace rlock::lock {

/// Name of a lock and the keys that it has on Redis. The lock's own key is prefix + name, plain, so that locks of
/// other programs on it are respected; the others carry it as their hash tag, so that all live in one Cluster slot.
class LockName {
 public:
  /// Throws Error{usage}: 1 to 512 bytes, any but NUL, newline and braces other than one non-empty {tag}.
  LockName(std::string_view prefix, std::string_view name);

  /// As the user gave it, without the prefix.
  const std::string& text() const { return name_; }
  const std::string& key() const { return key_; }
  std::string_view prefix() const { return std::string_view{key_}.substr(0, key_.size() - name_.size()); }
  /// lock, queue, waiters, meta, history: the order of every script.
  std::vector<std::string> keys() const;
  /// Where one waiter is woken.
  std::string channel(const Level& waiter) const { return base_ + ":wake:" + waiter.text(); }

  friend bool operator==(const LockName& a, const LockName& b) { return a.key_ == b.key_; }

 private:
  std::string name_;
  std::string key_;
  std::string base_;  // what the other keys begin with
};

/// Whether `key` is a queue, waiters, meta or history key rather than a lock's own.
bool is_companion_key(std::string_view key);

}  // namespace rlock::lock
