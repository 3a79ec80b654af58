#include "lock/permissions.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/escape.h"
#include "redis/reply.h"

namespace rlock::lock {
namespace {

/// What we send and what the scripts call: Redis checks a script's commands as if the user had sent them.
constexpr std::string_view commands =
    "+eval +evalsha +script|load +time +info +type +exists +get +set +del +pttl +pexpire +pexpireat +getrange +hget "
    "+hmget +hset +hdel +hlen +hgetall +hscan +zadd +zrem +zrange +zrank +zcard +rpush +ltrim +lrange +lset +publish "
    "+subscribe +unsubscribe +pubsub|numsub +pubsub|channels +scan +wait";

/// A glob pattern for `text`, in which '?' stands for each character that an ACL rule or a command line cannot hold.
std::string pattern(std::string_view text) {
  std::string out = glob_escape(text);
  const auto awkward = [](unsigned char c) { return c <= ' ' || c == '"' || c == '\'' || c >= 0x7F; };
  std::replace_if(out.begin(), out.end(), awkward, '?');
  return out;
}

}  // namespace

std::string needed_permissions(std::string_view prefix, Use use) {
  const std::string own = pattern(prefix);
  // If the prefix or the name has a {tag}, the companion keys begin as the lock's own key does.
  const bool always_tagged = prefix.find('{') != std::string_view::npos;
  std::string rules = fmt::format("~{}*", own);
  if (!prefix.empty() && !always_tagged)
    rules += fmt::format(" ~{{{}*}}:*", own);
  if (use.channels)
    rules += fmt::format(" &{}*:wake:*", own);
  if (use.channels && !prefix.empty() && !always_tagged)
    rules += fmt::format(" &{{{}*}}:wake:*", own);
  rules += fmt::format(" {}", commands);
  if (use.database)
    rules += " +select";
  if (use.sentinel)
    rules += " +role";
  if (use.cluster)
    rules += " +cluster|nodes +asking";
  return rules;
}

Error advise_on_permissions(const Error& error) {
  const std::string_view message{error.what()};
  if (error.code() != ExitCode::no_permission || !redis::lacks_permission(message))
    return error;
  return {error.code(),
          fmt::format(
              "{}; rlock needs more rights: `rlock check` with the same user and URL prints the ACL SETUSER line that "
              "suffices",
              message)};
}

}  // namespace rlock::lock
