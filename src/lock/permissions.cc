#include "lock/permissions.h"

#include <fmt/format.h>

#include "base/escape.h"

namespace rlock::lock {
namespace {

/// Sent by us, and by the scripts. A script's own commands are checked as if the user had sent them.
constexpr std::string_view commands =
    "+eval +evalsha +time +type +info +hget +hset +hdel +hgetall +hincrby +getrange +pttl +pexpire +pexpireat +del "
    "+zadd +zrem +zrange +zrank +zcard +publish +subscribe +pubsub|numsub +scan +select +wait +role +cluster|nodes "
    "+asking";

}  // namespace

std::string needed_permissions(std::string_view prefix) {
  const std::string own = glob_escape(prefix);
  return fmt::format("~{0}* ~{{{0}*}}:* &{0}* &{{{0}*}}:* {1}", own, commands);
}

Error explain(const Error& error, std::string_view prefix) {
  const std::string_view message{error.what()};
  const bool missing = message.find("NOPERM") != std::string_view::npos ||
                       message.find("The user executing the script") != std::string_view::npos;
  if (error.code() != ExitCode::no_permission || !missing)
    return error;
  return {error.code(), fmt::format("{}; rlock needs: {}", message, needed_permissions(prefix))};
}

}  // namespace rlock::lock
