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
  /// What is left of the answer.
  const redis::Reply& reply() const { return reply_; }
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

/// What is sent: a plain command, or a call of a script by its digest.
struct Request {
  redis::Command command;
  const Script* script = nullptr;
  std::size_t age = 0;  // which of the words says how many ms have passed `since`; 0: none does
  BootClock::time_point since = {};
};

/// The same call with the script's text, for a server that does not know the script.
redis::Command with_source(const Request& request);

/// What came of a call to one server: nothing yet, its answer, or why it failed: no_permission if Redis refuses our
/// user, config or os if we cannot connect (a password file, a certificate, no descriptor), else unavailable.
using CallResult = std::variant<std::monostate, Fields, Error>;

/// One request to one server, which may carry no other exchange meanwhile. It is as passive as the server.
class Call {
 public:
  Call(redis::Server& server, Request request, Deadline deadline);

  /// To be called when the server is ready or its deadline has passed, until it returns what came of the call.
  CallResult advance();
  /// Says that nobody waits for the answer any more.
  void abandon();

  const redis::Server& server() const { return *server_; }
  std::string_view name() const {
    return request_.script != nullptr ? request_.script->name : request_.command.front();
  }

 private:
  /// How the server is told which script to run. `source` is for a user who may not load, or a server that has
  /// forgotten the script again at once.
  enum class Form { digest, loaded, source };

  void send_script();

  redis::Server* server_;
  Request request_;
  Deadline deadline_;
  Form form_ = Form::digest;
  bool is_over_ = false;
};

/// How long to wait at least for stragglers once the answers suffice. Nothing if they do not suffice yet.
using Grace = std::function<std::optional<Milliseconds>(std::span<const CallResult>)>;

/// For a caller that needs all answers.
inline std::optional<Milliseconds> need_all(std::span<const CallResult>) { return std::nullopt; }

/// The calls of those servers that have not answered yet, each at its server's place.
using OpenCalls = std::vector<std::optional<Call>>;

/// Asks all servers at once. Ends when all have answered or failed, at the deadline, or, once the answers suffice, when
/// the stragglers have had as long as the answers took, and the grace at least. The calls of stragglers are abandoned,
/// or moved to `open`. Throws only what a handler of the loop throws.
std::vector<CallResult> call_everywhere(std::span<redis::Server> servers,
                                        const Request& request,
                                        Deadline deadline,
                                        const Grace& grace = need_all,
                                        OpenCalls* open = nullptr);

/// Calls a script at one server; throws what it failed with.
Fields call_script(redis::Server& server, const Request& request, Deadline deadline);

}  // namespace rlock::lock
