#include "redis/refusal.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace rlock::redis {
namespace {

using Texts = std::initializer_list<std::string_view>;

bool has_code(const Reply& reply, Texts codes) {
  return std::any_of(codes.begin(), codes.end(), [&](auto code) { return reply.is_error(code); });
}

bool says(std::string_view text, Texts words) {
  return std::any_of(words.begin(), words.end(), [&](auto word) { return text.find(word) != std::string::npos; });
}

/// Redis 5 reports a wrong password as a plain ERR, and a server with a password refuses a long command from an
/// unauthenticated client before it reads all of it.
bool refuses_us(const Reply& reply) {
  return has_code(reply, {"NOAUTH", "WRONGPASS", "DENIED"}) || lacks_permission(reply.text) ||
         says(reply.text, {"unauthenticated", "invalid password"}) || wants_no_password(reply);
}

/// Where Redis begins to say which line of which script failed, " script: SHA1, on @user_script:242.", which tells a
/// user nothing. Valkey 9 leaves the SHA1 out.
std::size_t find_script_line(std::string_view text) {
  constexpr std::string_view begin = " script: ";
  constexpr std::size_t digest = 40;
  const auto line = text.find("on @user_script");
  const auto at = text.rfind(begin, line);
  if (line == std::string_view::npos || at == std::string_view::npos)
    return std::string_view::npos;
  const auto between = line - at - begin.size();
  return between == 0 || between == digest + 2 ? at : std::string_view::npos;  // 2 for ", "
}

/// Whether the error tells of a state of the server that ends by itself.
bool may_pass(const Reply& reply) {
  return has_code(reply,
                  {"LOADING",
                   "BUSY",
                   "OOM",
                   "TRYAGAIN",
                   "CLUSTERDOWN",
                   "MASTERDOWN",
                   "READONLY",
                   "MISCONF",
                   "NOREPLICAS",
                   "MOVED",
                   "ASK"}) ||
         says(reply.text, {"max number of clients"});
}

}  // namespace

/// Inside a script a missing permission is reported as a plain ERR: in the second of these forms by Redis 7.0, in the
/// third since then.
bool lacks_permission(std::string_view words) {
  return says(words, {"NOPERM", "The user executing the script", "ACL failure in script"});
}

bool wants_no_password(const Reply& reply) {
  return reply.is_error() && says(reply.text, {"without any password configured", "no password is set"});
}

std::string shown_words(const Reply& reply) {
  constexpr std::size_t longest = 500;
  const std::string_view text = reply.error_words();
  std::string words{text.substr(0, std::min({text.find("with args"), find_script_line(text), longest}))};
  while (words.ends_with(' ') || words.ends_with(',') || words.ends_with('.')) words.pop_back();
  return words;
}

Error refusal(const Reply& reply) {
  const ExitCode code = refuses_us(reply) ? ExitCode::no_permission : ExitCode::unavailable;
  const std::string words = shown_words(reply);
  if (reply.is_error("NOAUTH") || says(reply.text, {"unauthenticated"}))
    return {code, "a password is needed: " + words};
  if (reply.is_error("READONLY"))
    return {code, "this is a replica, which takes no writes; name its master, or its sentinels by redis-sentinel://"};
  return {code, words, !may_pass(reply)};
}

void check_reply(const Address& from, const Reply& reply) {
  if (reply.is_error())
    throw refusal(reply).about(from.url);
}

}  // namespace rlock::redis
