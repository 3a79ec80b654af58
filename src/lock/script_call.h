#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/loop.h"
#include "lock/scripts.h"
#include "redis/server.h"

namespace rlock::lock {

/// A script's answer, read from left to right: its outcome's name, then texts. Hostile until read: whatever is not
/// there or not of the kind asked for throws Error{unavailable}.
class Fields {
 public:
  Fields(const redis::Address& from, redis::Reply reply);

  const std::string& outcome() const { return outcome_; }
  const std::string& server() const { return server_; }
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

/// What one server made of a call: nothing yet, its answer, or why it failed (no_permission where Redis refuses who we
/// are, else unavailable with the server's words).
using Answered = std::variant<std::monostate, Fields, Error>;

/// Calls a script at all servers at once, by its digest, and with its text where the server does not know it yet. Ends
/// when all have answered or failed, or, once `enough` is true of the answers so far, when those that lag have had as
/// long again. Throws only what a handler of `loop` throws.
std::vector<Answered> call_everywhere(Loop& loop,
                                      std::span<redis::Server> servers,
                                      const Script& script,
                                      const ScriptArguments& arguments,
                                      Deadline deadline,
                                      const std::function<bool(std::span<const Answered>)>& enough);

/// Calls a script at one server; throws what it failed with.
Fields call_script(
    Loop& loop, redis::Server& server, const Script& script, const ScriptArguments& arguments, Deadline deadline);

/// The command that call_script() sends, for callers that send many at once.
redis::Command script_command(const Script& script, const ScriptArguments& arguments);

/// Throws for an error reply as call_script() does.
void check_reply(const redis::Address& from, const redis::Reply& reply);

}  // namespace rlock::lock
