#include "cli/enclosing.h"

#include "base/escape.h"
#include "base/word.h"
#include "cli/config.h"
#include "redis/address.h"

namespace rlock::cli {

std::string join_urls(const std::vector<redis::Server>& servers) {
  std::string urls;
  for (const redis::Server& server : servers) urls += (urls.empty() ? "" : " ") + server.address().bare_url;
  return urls;
}

bool names_servers(const std::string& urls) {
  const std::string named = from_environment(redis_variable).value_or("");
  std::string bare;
  for (const Value& url : split_urls(named)) bare += (bare.empty() ? "" : " ") + redis::strip_password(url.text);
  return bare == urls;
}

std::string held_around(const Settings& settings, const std::string& urls) {
  const bool same = names_servers(urls) && from_environment(prefix_variable).value_or("") == settings.prefix;
  return same ? from_environment("RLOCK_HELD").value_or("") : "";
}

std::string held_with(const Settings& settings,
                      const std::string& urls,
                      const std::string& name,
                      const lock::Token& token) {
  const std::string entry = percent_encode(name) + "=";
  std::string held = entry + token.text();
  const std::string before = held_around(settings, urls);
  for (std::string_view rest = before; !rest.empty();) {
    const std::string_view other = take_word(rest);
    if (!other.empty() && !other.starts_with(entry))
      held.append(" ").append(other);
  }
  return held;
}

std::optional<lock::Token> inherited_token(std::string_view held, const std::string& name) {
  while (!held.empty()) {
    std::string_view token = take_word(held);
    if (percent_decode(take_word(token, '=')) != name)
      continue;
    if (auto parsed = lock::Token::parse(token))
      return parsed;
  }
  return std::nullopt;
}

}  // namespace rlock::cli
