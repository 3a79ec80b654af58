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

/// Whether the companion keys of a lock may begin otherwise than its own key: not if the prefix has a {tag}.
bool adds_tag(std::string_view prefix) { return !prefix.empty() && prefix.find('{') == std::string_view::npos; }

std::string key_rules(std::string_view prefix) {
  const std::string own = pattern(prefix);
  return fmt::format("~{}*", own) + (adds_tag(prefix) ? fmt::format(" ~{{{}*}}:*", own) : "");
}

std::string channel_rules(std::string_view prefix) {
  const std::string own = pattern(prefix);
  return fmt::format("&{}*:wake:*", own) + (adds_tag(prefix) ? fmt::format(" &{{{}*}}:wake:*", own) : "");
}

}  // namespace

std::string needed_permissions(std::string_view prefix, Use use) {
  std::string rules = key_rules(prefix);
  if (use.channels)
    rules += fmt::format(" {}", channel_rules(prefix));
  rules += fmt::format(" {}", commands);
  if (use.database)
    rules += " +select";
  if (use.sentinel)
    rules += " +role";
  if (use.cluster)
    rules += " +cluster|nodes +asking";
  return rules;
}

Error advise_on_permissions(const Error& error, std::string_view prefix) {
  const std::string_view message{error.what()};
  if (error.code() != ExitCode::no_permission || !redis::lacks_permission(message))
    return error;
  // Redis names a command that it refuses, but not always a key.
  const bool is_about_keys = message.find(" key") != std::string_view::npos;
  return {error.code(),
          fmt::format("{}; rlock needs more rights{}: `rlock check` with the same user and URL prints the ACL SETUSER "
                      "line that suffices",
                      message,
                      is_about_keys ? fmt::format(" ({})", key_rules(prefix)) : "")};
}

}  // namespace rlock::lock
