#include "cli/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/word.h"

namespace rlock::cli {
namespace {

/// Options that contradict each other. In one source both together are an error; --wait in a stronger source overrides
/// --nonblock in a weaker one. --once and --once-per need an exclusive lock, since several holders at a time would do
/// the work several times.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> rivals{{{"nonblock", "wait"},
                                                                                {"exclusive", "shared"},
                                                                                {"exclusive", "slots"},
                                                                                {"shared", "slots"},
                                                                                {"once", "once-per"},
                                                                                {"once", "shared"},
                                                                                {"once", "slots"},
                                                                                {"once-per", "shared"},
                                                                                {"once-per", "slots"},
                                                                                {"quiet", "verbose"},
                                                                                {"token", "force"},
                                                                                {"json", "prometheus"},
                                                                                {"json", "timeline"},
                                                                                {"prometheus", "watch"}}};

bool are_rivals(const Option& a, const Option& b) {
  return std::any_of(rivals.begin(), rivals.end(), [&](const auto& pair) {
    return (pair.first == a.name && pair.second == b.name) || (pair.first == b.name && pair.second == a.name);
  });
}

bool is_denied(const Given& given) { return given.option->is_flag() && given.values.back().text == "no"; }

/// `--slots 1` contradicts only --shared, since it means --exclusive.
bool contradict(const Given& a, const Given& b) {
  const auto is_shared = [](const Given& given) { return given.option->name == "shared"; };
  const auto is_one_slot = [](const Given& given) {
    return given.option->name == "slots" && given.values.back().text == "1";
  };
  const bool both_exclusive = (is_one_slot(a) || is_one_slot(b)) && !is_shared(a) && !is_shared(b);
  return are_rivals(*a.option, *b.option) && !is_denied(a) && !is_denied(b) && !both_exclusive;
}

bool overrides(const Given& stronger, const Given& weaker) {
  return stronger.option == weaker.option || contradict(stronger, weaker);
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
      urls.push_back({.text = std::string{url}, .origin = redis_variable});
  }
  return urls;
}

std::vector<Value> redis_from_environment() {
  if (const auto urls = from_environment(redis_variable))
    return split_urls(*urls);
  if (const auto url = from_environment("REDIS_URL"))
    return {{.text = *url, .origin = "REDIS_URL"}};
  return {};
}

std::vector<Value> variable_of(const Option& option) {
  const std::string variable{option.environment};
  const char* value = std::getenv(variable.c_str());
  const bool given = value != nullptr && (*value != '\0' || variable == prefix_variable);  // a prefix may be empty
  return given ? std::vector<Value>{{.text = value, .origin = variable}} : std::vector<Value>{};
}

/// The NAME=value that hands an option on to a nested rlock. The servers, without their passwords, and the prefix are
/// handed on by run.cc. A password file that is a pipe is not handed on: it has been read, and a nested rlock would
/// block on it.
std::optional<std::string> handed_on(const Option& option, const Value& value) {
  const bool apart = option.name == "redis" || option.name == "prefix";
  if (option.environment.empty() || apart || value.text.empty())
    return std::nullopt;
  std::error_code error;
  if (option.name == "password-file" && !std::filesystem::is_regular_file(value.text, error))
    return std::nullopt;
  return fmt::format("{}={}", option.environment, value.text);
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
    auto values = option.name == "redis" ? redis_from_environment() : variable_of(option);
    // A password in the environment overrides a password file that a configuration file names.
    const bool silences = option.name == "password-file" && password_from_environment();
    if (!values.empty() || silences)
      layer.push_back({&option, std::move(values)});
  }
  return layer;
}

void check_consistency(const Layer& layer) {
  for (auto given = layer.begin(); given != layer.end(); ++given) {
    const Value& value = given->values.back();
    if (given->values.size() > 1 && !given->option->may_repeat())
      throw Error{value.fault, fmt::format("{} is given twice", value.origin)};
    const auto rival =
        std::find_if(layer.begin(), given, [&](const Given& other) { return contradict(other, *given); });
    if (rival != given)
      throw Error{value.fault, fmt::format("{} and --{}: choose one", value.origin, rival->option->name)};
  }
}

Settings merge(std::span<const Layer> layers) {
  Settings settings;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const Given& given : layers[i]) {
      if (is_overridden(given, layers.subspan(i + 1)))
        continue;
      for (const Value& text : given.values) {
        const Value value = given.option->resolve(text);
        if (given.option->set != nullptr)
          given.option->set(settings, value);
        if (auto variable = handed_on(*given.option, value))
          settings.handed_on.push_back(*std::move(variable));
      }
    }
  }
  return settings;
}

std::optional<std::string> password_from_environment() {
  auto password = from_environment("RLOCK_PASSWORD");
  return password ? password : from_environment("REDISCLI_AUTH");
}

}  // namespace rlock::cli
