#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "lock/scripts.h"
#include "redis/connection.h"

namespace rlock::lock {

/// A script's answer, read from left to right: its outcome's name, then texts. Hostile until read: whatever is not
/// there or not of the kind asked for throws Error{unavailable}.
class Fields {
 public:
  Fields(const redis::Address& from, redis::Reply reply);

  const std::string& outcome() const { return outcome_; }
  bool at_end() const { return next_ == reply_.elements.size(); }
  std::string text();
  /// A whole number, at most 2^53.
  long long number();
  [[noreturn]] void unexpected() const;

 private:
  std::string server_;
  redis::Reply reply_;
  std::size_t next_ = 0;
  std::string outcome_;
};

struct ScriptArguments {
  std::vector<std::string> keys;
  std::vector<std::string> values;
};

/// Calls a script once, by its digest; with its text where the server does not know it yet. Error replies are thrown:
/// no_permission where Redis refuses who we are, else unavailable with the server's words.
Fields call_script(Loop& loop, redis::Connection& connection, const Script& script, const ScriptArguments& arguments,
                   Deadline deadline);

/// The command that call_script() sends, for callers that send many at once.
redis::Command script_command(const Script& script, const ScriptArguments& arguments);

/// Throws for an error reply as call_script() does.
void check_reply(const redis::Address& from, const redis::Reply& reply);

}  // namespace rlock::lock
