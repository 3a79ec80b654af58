#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace rlock::lock {

/// Who holds or waits, for people: never used to decide anything. What comes back from Redis may be anybody's words.
struct Owner {
  std::string holder;  // user@host, or --holder
  std::string host;
  std::string user;
  pid_t pid = 0;        // rlock's own: kill it and the job ends and the lock is released
  std::string command;  // empty for acquire
  std::string note;

  /// Percent-encoded fields, one space between them.
  std::string encode() const;
  /// Takes anything; what is missing or malformed stays empty.
  static Owner decode(std::string_view text);

  friend bool operator==(const Owner&, const Owner&) = default;
};

/// This process on this machine. `holder` may be empty; a long command is cut.
Owner describe_self(std::string holder, std::string note, const std::vector<std::string>& command);

}  // namespace rlock::lock
