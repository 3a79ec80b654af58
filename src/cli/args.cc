#include "cli/args.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/config.h"
#include "cli/config_file.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/words.h"

namespace rlock::cli {
namespace {

/// CLI11's words, and ours where we know what was meant.
std::string explain(const Words& words, std::string message) {
  const bool run = words.verb->subcommand == Subcommand::run;
  const auto is_c = [](const std::string& word) { return word.starts_with("-c"); };
  if (run && std::any_of(words.options.begin(), words.options.end(), is_c)) {
    return "run has no -c; write `-- sh -c '...'` behind the options";
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message;
}

/// CLI11 is fed the options that the command line mentions, and only those: building all would cost every start.
Layer parse_options(const Words& words) {
  CLI::App app;
  app.set_help_flag();
  std::vector<std::vector<std::string>> texts(words.mentioned.size());  // CLI11 keeps references to them
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Option& option = *words.mentioned[i];
    if (!option.belongs_to(words.verb->subcommand))
      continue;
    if (option.is_flag()) {
      app.add_flag_callback(std::string{option.names}, [&text = texts[i]] { text = {"yes"}; });
    } else {
      app.add_option(std::string{option.names}, texts[i])->allow_extra_args(false);  // else "[a,b]" would be a list
    }
  }
  try {
    std::vector<std::string> reversed(words.options.rbegin(), words.options.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw Error{ExitCode::usage, explain(words, error.what())};
  }
  Layer layer;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Given given{words.mentioned[i], {}};
    for (std::string& text : texts[i])
      given.values.push_back({.text = std::move(text), .origin = std::string{given.option->long_name()}});
    if (!given.values.empty())
      layer.push_back(std::move(given));
  }
  return layer;
}

const Given* find_given(const Layer& layer, std::string_view name) {
  const auto found =
      std::find_if(layer.begin(), layer.end(), [&](const Given& g) { return g.option->long_name() == name; });
  return found == layer.end() ? nullptr : &*found;
}

void take_positional_keys(const Words& words, bool named, Settings& settings) {
  if (words.keys.empty())
    return;
  const auto refuse = [&](const std::string& word, std::string_view why) {
    throw Error{ExitCode::usage, fmt::format("unexpected '{}': {}", word, why)};
  };
  if (words.verb->subcommand == Subcommand::run)
    refuse(words.keys[0], "write `--` before the command, and --key K");
  if (named)
    refuse(words.keys[0], "the key is given by --key already");
  if (words.keys.size() > 1 && words.verb->subcommand != Subcommand::status)
    refuse(words.keys[1], "one key is enough");
  settings.keys = words.keys;
}

/// Files, then the environment, then the command line: each outranks what comes before it.
Settings read_settings(const Words& words) {
  const Subcommand subcommand = words.verb->subcommand;
  const Layer line = parse_options(words);
  const Given* config = find_given(line, "--config");
  auto files =
      read_config_files(config != nullptr ? config->values.back().text : from_environment("RLOCK_CONFIG"), subcommand);
  std::vector<Layer> layers = std::move(files.layers);
  layers.push_back(read_environment(subcommand));
  layers.push_back(line);
  Settings settings = merge(layers);
  settings.exposed_files = std::move(files.exposed);
  settings.redis_on_command_line = find_given(line, "--redis") != nullptr;
  take_positional_keys(words, find_given(line, "--key") != nullptr, settings);
  return settings;
}

/// Neither help nor anything to do: what is wrong.
std::string describe_fault(const Words& words) {
  if (!words.unknown_verb.empty())
    return fmt::format("unknown subcommand '{}'", words.unknown_verb);
  return words.options.empty() ? "no subcommand" : fmt::format("no subcommand, only {}", words.options.front());
}

}  // namespace

Invocation parse_arguments(int argc, const char* const* argv) {
  const Words words = split(argc, argv);
  Invocation invocation;
  if (words.help) {
    invocation.text = words.verb == nullptr ? usage() : help(*words.verb);
    return invocation;
  }
  if (words.version) {
    invocation.text = "rlock " RLOCK_VERSION "\n";
    return invocation;
  }
  if (words.verb == nullptr) {
    invocation.fault = describe_fault(words);
    invocation.text = usage();
    return invocation;
  }
  invocation.subcommand = words.verb->subcommand;
  invocation.settings = read_settings(words);
  invocation.command = words.command;
  if (words.verb->subcommand == Subcommand::run && words.command.empty()) {
    throw Error{ExitCode::usage, "no command; write `rlock run --key K -- COMMAND`"};
  }
  return invocation;
}

}  // namespace rlock::cli
