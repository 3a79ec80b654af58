#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lock/token.h"

namespace rlock::lock {

/// The name of a lock, and its keys on Redis. The lock's own key is prefix + name, so that a lock which another program
/// keeps under that key is respected. The companion keys carry it as their hash tag, so that all are in one Cluster
/// slot.
class LockName {
 public:
  /// Throws Error{usage} unless the name has 1 to 512 bytes, no newline, and no braces but those of one non-empty
  /// {tag}, which may begin or end in the prefix, but is not all of the key. `origin` is where the name was given, for
  /// the message: "--key".
  LockName(std::string_view prefix, std::string_view name, std::string_view origin = "the key");

  /// As the user gave it, without the prefix.
  const std::string& text() const { return name_; }
  const std::string& key() const { return key_; }
  std::string_view prefix() const { return std::string_view{key_}.substr(0, key_.size() - name_.size()); }
  /// lock, queue, waiters, meta, history, seats: the order in which every script expects them.
  std::vector<std::string> keys() const;
  /// The same, and then level_end and token_end, which tell for a while what became of a level or of a whole token.
  std::vector<std::string> keys(std::string_view level, std::string_view token) const;
  /// A key that exists while the lock is on hold, by which it is found where nobody holds it.
  std::string hold_mark() const;
  std::string history() const { return base_ + ":history"; }
  /// The channel on which one level is told of what concerns it.
  std::string channel(const Level& level) const { return base_ + ":wake:" + level.text(); }

  friend bool operator==(const LockName& a, const LockName& b) { return a.key_ == b.key_; }

 private:
  std::string name_;
  std::string key_;
  std::string base_;  // with which the companion keys begin
};

/// Whether `key` is a companion (queue, waiters, meta, history, hold, seats, ended:ID) rather than a lock's own key.
bool is_companion_key(std::string_view key);

}  // namespace rlock::lock
