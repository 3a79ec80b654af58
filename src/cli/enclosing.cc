#include "cli/enclosing.h"

#include "base/escape.h"
#include "base/word.h"
#include "cli/config.h"
#include "cli/options.h"

namespace rlock::cli {

std::string held_around(const Settings& settings, const std::string& urls) {
  const bool same =
      from_environment(redis_variable) == urls && from_environment(prefix_variable).value_or("") == settings.prefix;
  return same ? from_environment("RLOCK_HELD").value_or("") : "";
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

std::string join_urls(const std::vector<redis::Server>& servers) {
  std::string urls;
  for (const redis::Server& server : servers) urls += (urls.empty() ? "" : " ") + server.address().bare_url;
  return urls;
}

}  // namespace rlock::cli
