#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/loop.h"
#include "lock/scripts.h"
#include "redis/server.h"

namespace rlock::lock {

/// A script's answer, read from left to right: the name of the outcome, then texts. It is not trusted: reading a field
/// that is missing or of another kind throws Error{unavailable}.
class Fields {
 public:
  Fields(const redis::Address& from, redis::Reply reply);

  const std::string& outcome() const { return outcome_; }
  const std::string& server() const { return server_; }
  bool at_end() const { return next_ == reply_.elements.size(); }
  /// The text at its end, or an empty one; it counts as not yet read.
  std::string_view last() const;
  std::string text();
  /// A whole number between -2^53 and 2^53.
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

/// What is sent: a plain command, or a call of a script by its digest.
struct Request {
  redis::Command command;
  const Script* script = nullptr;
};

Request script_request(const Script& script, const ScriptArguments& arguments);

/// The same call with the script's text, for a server that does not know the script.
redis::Command with_source(const Request& request);

/// What came of a call to one server: nothing yet, its answer, or why it failed (no_permission if Redis refuses our
/// user, else unavailable, with the server's words).
using CallResult = std::variant<std::monostate, Fields, Error>;

/// How long to wait at least for stragglers once the answers suffice. Nothing if they do not suffice yet.
using Grace = std::function<std::optional<Milliseconds>(std::span<const CallResult>)>;

/// For a caller that needs all answers.
inline std::optional<Milliseconds> need_all(std::span<const CallResult>) { return std::nullopt; }

/// Asks all servers at once. Ends when all have answered or failed, at the deadline, or, once the answers suffice,
/// after the same time again or the grace, whichever is longer. Throws only what a handler of `loop` throws.
std::vector<CallResult> call_everywhere(Loop& loop,
                                        std::span<redis::Server> servers,
                                        const Request& request,
                                        Deadline deadline,
                                        const Grace& grace = need_all);

/// Calls a script at one server; throws what it failed with.
Fields call_script(Loop& loop, redis::Server& server, const Request& request, Deadline deadline);

}  // namespace rlock::lock
