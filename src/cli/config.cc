#include "cli/config.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/options.h"

namespace rlock::cli {
namespace {

/// Calls `each` with every space-separated word.
template <typename Each>
void for_each_word(std::string_view text, Each each) {
  while (!text.empty()) {
    const auto space = text.find(' ');
    if (space != 0)
      each(std::string{text.substr(0, space)});
    if (space == std::string_view::npos)
      return;
    text.remove_prefix(space + 1);
  }
}

void read_redis(Settings& settings, const Option& option) {
  if (const auto urls = from_environment("RLOCK_REDIS")) {
    for_each_word(*urls,
                  [&](std::string url) { option.set(settings, {.text = std::move(url), .origin = "RLOCK_REDIS"}); });
  } else if (const auto url = from_environment("REDIS_URL")) {
    option.set(settings, {.text = *url, .origin = "REDIS_URL"});
  }
}

}  // namespace

std::optional<std::string> from_environment(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0')
    return std::nullopt;
  return value;
}

void read_environment(Settings& settings, Subcommand subcommand, const std::function<bool(const Option&)>& overridden) {
  for (const Option& option : all_options()) {
    if (option.environment.empty() || !option.belongs_to(subcommand) || overridden(option))
      continue;
    if (option.environment == "RLOCK_REDIS") {
      read_redis(settings, option);
      continue;
    }
    const std::string variable{option.environment};
    const char* value = std::getenv(variable.c_str());
    const bool given = value != nullptr && (*value != '\0' || variable == "RLOCK_PREFIX");  // an empty prefix is one
    if (given)
      option.set(settings, {.text = value, .origin = variable});
  }
}

std::optional<std::string> password_from_environment() {
  auto password = from_environment("RLOCK_PASSWORD");
  return password ? password : from_environment("REDISCLI_AUTH");
}

}  // namespace rlock::cli
