#include "cli/config.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/word.h"
#include "cli/options.h"

namespace rlock::cli {
namespace {

/// Of each group one word is enough: whoever says --wait in one place means to outrank --nonblock in a weaker one.
constexpr std::array<std::array<std::string_view, 3>, 3> rivals{
    {{"--nonblock", "--wait", ""}, {"--exclusive", "--shared", "--slots"}, {"--quiet", "--verbose", ""}}};

bool are_rivals(const Option& a, const Option& b) {
  const auto in = [](const auto& group, const Option& o) {
    return std::find(group.begin(), group.end(), o.long_name()) != group.end();
  };
  return std::any_of(rivals.begin(), rivals.end(), [&](const auto& group) { return in(group, a) && in(group, b); });
}

bool overrides(const Given& stronger, const Given& weaker) {
  if (stronger.option == weaker.option)
    return true;
  const bool denied = stronger.option->is_flag() && stronger.values.back().text == "no";
  return !denied && are_rivals(*stronger.option, *weaker.option);
}

bool is_overridden(const Given& given, std::span<const Layer> stronger) {
  return std::any_of(stronger.begin(), stronger.end(), [&](const Layer& layer) {
    return std::any_of(layer.begin(), layer.end(), [&](const Given& other) { return overrides(other, given); });
  });
}

std::vector<Value> split_urls(std::string_view text) {
  std::vector<Value> urls;
  while (!text.empty()) {
    const std::string_view url = take_word(text);
    if (!url.empty())
      urls.push_back({.text = std::string{url}, .origin = "RLOCK_REDIS"});
  }
  return urls;
}

std::vector<Value> redis_from_environment() {
  if (const auto urls = from_environment("RLOCK_REDIS"))
    return split_urls(*urls);
  if (const auto url = from_environment("REDIS_URL"))
    return {{.text = *url, .origin = "REDIS_URL"}};
  return {};
}

std::vector<Value> variable_of(const Option& option) {
  const std::string variable{option.environment};
  const char* value = std::getenv(variable.c_str());
  const bool given = value != nullptr && (*value != '\0' || variable == "RLOCK_PREFIX");  // an empty prefix is one
  return given ? std::vector<Value>{{.text = value, .origin = variable}} : std::vector<Value>{};
}

}  // namespace

std::optional<std::string> from_environment(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0')
    return std::nullopt;
  return value;
}

Layer read_environment(Subcommand subcommand) {
  Layer layer;
  for (const Option& option : all_options()) {
    if (option.environment.empty() || !option.belongs_to(subcommand))
      continue;
    auto values = option.environment == "RLOCK_REDIS" ? redis_from_environment() : variable_of(option);
    // A password in the environment outranks a file's password file.
    const bool silences = option.environment == "RLOCK_PASSWORD_FILE" && password_from_environment();
    if (!values.empty() || silences)
      layer.push_back({&option, std::move(values)});
  }
  return layer;
}

Settings merge(std::span<const Layer> layers) {
  Settings settings;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const Given& given : layers[i]) {
      if (is_overridden(given, layers.subspan(i + 1)))
        continue;
      for (const Value& value : given.values) given.option->set(settings, value);
    }
  }
  return settings;
}

std::optional<std::string> password_from_environment() {
  auto password = from_environment("RLOCK_PASSWORD");
  return password ? password : from_environment("REDISCLI_AUTH");
}

}  // namespace rlock::cli
