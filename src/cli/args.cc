#include "cli/args.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>

#include "cli/config.h"
#include "cli/options.h"

namespace rlock::cli {
namespace {

struct Verb {
  std::string_view name;
  Subcommand subcommand;
  std::string_view synopsis;
  std::string_view purpose;
};

constexpr std::array<Verb, 5> verbs{{
    {"run", Subcommand::run, "run --key K [OPTION...] -- COMMAND [ARG...]", "Run a command while holding a lock"},
    {"acquire", Subcommand::acquire, "acquire --key K [OPTION...]", "Take a lock and print its token"},
    {"renew", Subcommand::renew, "renew [--key K] [--token T] [--ttl D]", "Extend a lease"},
    {"release", Subcommand::release, "release [--key K] [--token T | --force [--fence N]]", "Give a lock up"},
    {"status", Subcommand::status, "status [KEY...] [--json]", "Who holds what, and who waits"},
}};

std::string usage() {
  std::string text = "Usage:\n";
  for (const Verb& verb : verbs) text += fmt::format("  rlock {}\n", verb.synopsis);
  text += "\n";
  for (const Verb& verb : verbs) text += fmt::format("  {:<10}{}\n", verb.name, verb.purpose);
  return text + "\n`rlock SUBCOMMAND --help` lists its options; rlock(1) explains them.\n";
}

const Option* find_option(std::string_view word) {
  const std::string_view name = word.substr(0, word.starts_with("--") ? word.find('=') : 2);
  for (const Option& option : all_options()) {
    const bool short_match = option.names[1] != '-' && option.names.substr(0, 2) == name;
    if (short_match || option.long_name() == name)
      return &option;
  }
  return nullptr;
}

/// Whether the value of this option, if it takes one, is the next word.
bool takes_next_word(std::string_view word, const Option& option) {
  return !option.is_flag() && (word.starts_with("--") ? word.find('=') == std::string_view::npos : word.size() == 2);
}

std::string help(const Verb& verb) {
  std::string text = fmt::format("Usage: rlock {}\n{}.\n\nOptions:\n", verb.synopsis, verb.purpose);
  for (const Option& option : all_options()) {
    if (!option.belongs_to(verb.subcommand))
      continue;
    const auto comma = option.names.find(',');
    const bool has_short = comma != std::string_view::npos;
    std::string names = has_short ? fmt::format("{}, ", option.names.substr(0, comma)) : "    ";
    names += option.long_name();
    if (!option.is_flag())
      names += fmt::format(" {}", option.value);
    text += fmt::format("  {:<30} {}\n", names, option.help);
  }
  text += fmt::format("  {:<30} {}\n", "-h, --help", "Show this");
  return text + "\nD is a duration: 30, 1.5s, 250ms, 10m, 2h, 7d. rlock(1) explains the rest.\n";
}

/// The words of the command line in their rooms.
struct Words {
  const Verb* verb = nullptr;
  std::string unknown_verb;          // what stood in its place
  std::vector<std::string> options;  // with their values
  std::vector<std::string> keys;     // neither, but the subcommand's name
  std::vector<std::string> command;  // after the first "--" of run
};

const Verb* find_verb(std::string_view word) {
  const auto found = std::find_if(verbs.begin(), verbs.end(), [&](const Verb& v) { return v.name == word; });
  return found == verbs.end() ? nullptr : &*found;
}

/// Options may stand before the subcommand's name too, so that must be looked for.
Words split(int argc, const char* const* argv) {
  Words words;
  int i = 1;
  for (; i < argc && std::string_view{argv[i]} != "--"; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with('-') || word == "-") {
      if (words.verb != nullptr) {
        words.keys.emplace_back(word);
      } else if ((words.verb = find_verb(word)) == nullptr) {
        words.unknown_verb = word;
        return words;
      }
      continue;
    }
    const Option* option = find_option(word);
    if (option != nullptr && !option->is_flag() && word.starts_with("--") && word.ends_with('=')) {
      words.options.emplace_back(word.substr(0, word.size() - 1));  // CLI11 would take the next word for the value
      words.options.emplace_back();
      continue;
    }
    words.options.emplace_back(word);
    if (option != nullptr && takes_next_word(word, *option) && i + 1 < argc)
      words.options.emplace_back(argv[++i]);
  }
  const bool run = words.verb != nullptr && words.verb->subcommand == Subcommand::run;
  for (++i; i < argc; ++i) (run ? words.command : words.keys).emplace_back(argv[i]);
  return words;
}

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

/// What one option was given, in the order of the command line.
struct Given {
  const Option* option;
  std::vector<std::string> values;
};

/// CLI11 is fed the options of one subcommand, and only those: building the others would cost every start.
std::vector<Given> parse_options(const Words& words) {
  CLI::App app;
  app.set_help_flag();
  std::vector<Given> given;
  given.reserve(all_options().size());  // CLI11 keeps references to the values
  for (const Option& option : all_options()) {
    if (!option.belongs_to(words.verb->subcommand))
      continue;
    auto& values = given.emplace_back(Given{&option, {}}).values;
    if (option.is_flag()) {
      app.add_flag_callback(std::string{option.names}, [&values] { values = {"yes"}; });
    } else {
      app.add_option(std::string{option.names}, values)->allow_extra_args(false);  // else "[a,b]" would be a list
    }
  }
  try {
    std::vector<std::string> reversed(words.options.rbegin(), words.options.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw Error{ExitCode::usage, explain(words, error.what())};
  }
  return given;
}

const std::vector<std::string>& values_of(const std::vector<Given>& given, std::string_view name) {
  static const std::vector<std::string> none;
  const auto found =
      std::find_if(given.begin(), given.end(), [&](const Given& g) { return g.option->long_name() == name; });
  return found == given.end() ? none : found->values;
}

void take_positional_keys(const Words& words, Settings& settings) {
  if (words.keys.empty())
    return;
  const auto refuse = [&](const std::string& word, std::string_view why) {
    throw Error{ExitCode::usage, fmt::format("unexpected '{}': {}", word, why)};
  };
  if (words.verb->subcommand == Subcommand::run)
    refuse(words.keys[0], "write `--` before the command, and --key K");
  if (!settings.keys.empty())
    refuse(words.keys[0], "the key is given by --key already");
  if (words.keys.size() > 1 && words.verb->subcommand != Subcommand::status)
    refuse(words.keys[1], "one key is enough");
  settings.keys = words.keys;
}

Settings read_settings(const Words& words) {
  const auto given = parse_options(words);
  Settings settings;
  read_environment(settings, words.verb->subcommand, [&](const Option& option) {
    return std::any_of(
        given.begin(), given.end(), [&](const Given& g) { return g.option == &option && !g.values.empty(); });
  });
  for (const auto& [option, values] : given) {
    for (const std::string& value : values) {
      option->set(settings, {.text = value, .origin = std::string{option->long_name()}});
    }
  }
  settings.redis_on_command_line = !values_of(given, "--redis").empty();
  take_positional_keys(words, settings);
  return settings;
}

bool contains(const std::vector<std::string>& words, std::string_view first, std::string_view second = {}) {
  return std::any_of(words.begin(), words.end(), [&](const auto& w) { return w == first || w == second; });
}

}  // namespace

Invocation parse_arguments(int argc, const char* const* argv) {
  const Words words = split(argc, argv);
  Invocation invocation;
  if (contains(words.options, "--help", "-h")) {
    invocation.text = words.verb == nullptr ? usage() : help(*words.verb);
    return invocation;
  }
  if (contains(words.options, "--version", "-V")) {
    invocation.text = "rlock " RLOCK_VERSION "\n";
    return invocation;
  }
  if (words.verb == nullptr) {
    invocation.fault = words.unknown_verb.empty() ? "no subcommand" : "unknown subcommand '" + words.unknown_verb + "'";
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
