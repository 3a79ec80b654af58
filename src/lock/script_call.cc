#include "lock/script_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "redis/exchange.h"

namespace rlock::lock {
namespace {

/// Refusals that no repetition mends. Redis 7 words what an ACL forbids inside a script as a plain ERR, and a
/// password-protected server cuts a long command short before it looks at who sent it.
bool is_refusal(const redis::Reply& reply) {
  constexpr std::array<std::string_view, 3> codes{"NOAUTH", "NOPERM", "WRONGPASS"};
  const bool coded = std::any_of(codes.begin(), codes.end(), [&](auto code) { return reply.is_error(code); });
  return coded || reply.text.find("The user executing the script") != std::string::npos ||
         reply.text.find("unauthenticated") != std::string::npos;
}

redis::Command command_with(std::string_view verb, std::string_view script, const ScriptArguments& arguments) {
  redis::Command command{std::string{verb}, std::string{script}, std::to_string(arguments.keys.size())};
  command.insert(command.end(), arguments.keys.begin(), arguments.keys.end());
  command.insert(command.end(), arguments.values.begin(), arguments.values.end());
  return command;
}

}  // namespace

Fields::Fields(const redis::Address& from, redis::Reply reply) : server_(from.url), reply_(std::move(reply)) {
  if (reply_.kind != redis::Reply::Kind::array) unexpected();
  outcome_ = text();
}

std::string Fields::text() {
  if (next_ >= reply_.elements.size() || reply_.elements[next_].kind != redis::Reply::Kind::text) unexpected();
  return std::move(reply_.elements[next_++].text);
}

long long Fields::number() {
  const std::string digits = text();
  long long value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value > (1LL << 53)) unexpected();
  return value;
}

void Fields::unexpected() const {
  throw Error{ExitCode::unavailable, fmt::format("{}: a script was answered with something else", server_)};
}

redis::Command script_command(const Script& script, const ScriptArguments& arguments) {
  return command_with("EVALSHA", script.sha1, arguments);
}

void check_reply(const redis::Address& from, const redis::Reply& reply) {
  if (!reply.is_error()) return;
  throw Error{is_refusal(reply) ? ExitCode::no_permission : ExitCode::unavailable,
              fmt::format("{}: {}", from.url, reply.text)};
}

Fields call_script(Loop& loop, redis::Connection& connection, const Script& script, const ScriptArguments& arguments,
                   Deadline deadline) {
  auto replies = redis::call(loop, connection, {script_command(script, arguments)}, deadline);
  if (replies[0].is_error("NOSCRIPT")) {
    replies = redis::call(loop, connection, {command_with("EVAL", script.source, arguments)}, deadline);
  }
  check_reply(connection.address(), replies[0]);
  return {connection.address(), std::move(replies[0])};
}

}  // namespace rlock::lock
