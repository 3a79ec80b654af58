#include "cli/enclosing.h"

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

}  // namespace rlock::cli
