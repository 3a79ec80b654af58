#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace rlock::lock {

/// Who holds or waits, for people to read. What comes from Redis may be anybody's words, so no exclusion rests on it;
/// it only tells askers apart (who is superseded, whom a tie is between), and whom `release --force` finds dead here.
struct Owner {
  std::string holder;  // user@host, or --holder
  std::string host;
  std::string user;
  pid_t pid = 0;      // of rlock itself: killing it ends the job and releases the lock
  bool stays = true;  // false for a plain acquire, whose process exits once it holds the lock, and for a run that
                      // has ended while one inside it holds the lock
  bool for_another = false;  // acquire --hold-pid: rlock may signal the process that works under the lock, not kill it
  std::string command;       // for acquire, the script that called it
  std::string note;

  /// Six percent-encoded fields with one space between them. The PID of a process that does not stay ends with "-",
  /// that of one that holds for another with "+".
  std::string encode() const;
  /// Its note in brackets, behind a space; empty where it has none.
  std::string remark() const { return note.empty() ? "" : " (" + note + ")"; }

  /// Accepts any text; a missing field stays empty, a malformed one becomes "?".
  static Owner decode(std::string_view text);

  friend bool operator==(const Owner&, const Owner&) = default;
};

/// The name of this machine, as an Owner has it.
std::string host_name();

/// Whether the process ran on this machine, and is gone. We cannot tell for other machines, nor for containers with the
/// same name.
bool is_gone(const Owner& owner);

/// This process on this machine. An empty `holder` becomes user@host; a long command is cut.
Owner describe_self(std::string holder, std::string note, const std::vector<std::string>& command);

}  // namespace rlock::lock
