#include "cli/args.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "cli/config.h"
#include "cli/config_file.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/suggest.h"
#include "cli/words.h"
#include "redis/masking.h"

namespace rlock::cli {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error{ExitCode::usage, why}; }

/// The options of the subcommand, or all options where there is none.
std::vector<std::string_view> option_names(const SubcommandEntry* subcommand) {
  std::vector<std::string_view> names;
  for (const Option& option : all_options()) {
    if (subcommand == nullptr || option.belongs_to(subcommand->id))
      names.push_back(option.name);
  }
  return names;
}

bool is_long(const std::string& word) { return word.starts_with("--"); }

/// An option's name without its value, which may be a secret.
std::string name_of(const std::string& word) {
  return is_long(word) ? word.substr(2, word.find('=') - 2) : word.substr(1, 1);
}

std::string describe_unknown(const std::string& word, const SubcommandEntry* subcommand) {
  const std::string name = name_of(word);
  return fmt::format("unknown option '{}{}'{}",
                     is_long(word) ? "--" : "-",
                     redis::mask_password(name),
                     is_long(word) ? did_you_mean(name, option_names(subcommand), "--") : "");
}

[[noreturn]] void refuse_unknown(const std::string& word, const SubcommandEntry& subcommand) {
  const std::string name = name_of(word);
  if (name == "password" || name == "pass")
    refuse(fmt::format("there is no --{}, since ps would show it; use --password-file or RLOCK_PASSWORD", name));
  if (name == "c" && subcommand.id == Subcommand::run)
    refuse("run has no -c; write `-- sh -c '...'` after the options");
  refuse(describe_unknown(word, &subcommand));
}

/// Refuses `-ttl 5`, which reads as `-t tl` and a word.
void refuse_single_dash(const Words& words) {
  for (const Given& given : words.options) {
    const Option& option = *given.option;
    const bool is_slip = option.letter + given.values.back().text == option.name;
    const bool may_be_meant = option.name == "key" && words.plain.empty();  // a lock may be called "ey"
    if (is_slip && !may_be_meant)
      refuse(fmt::format("-{0} means -{1} {2}; write --{0}", option.name, option.letter, given.values.back().text));
  }
}

/// Checks for a command without `--` first, since the unknown options may be the command's own.
void check_words(const Words& words) {
  refuse_single_dash(words);
  if (words.subcommand->id == Subcommand::run && !words.plain.empty() && !words.unknown_first) {
    const std::string word = redis::mask_password(words.plain.front());
    const bool has_key = words.find("key") != nullptr;
    if (!words.command.empty() && has_key)
      refuse(fmt::format("unexpected '{}': only options may stand between run and `--`", word));
    if (!words.command.empty())
      refuse(fmt::format("unexpected '{}': run takes its key as an option only, --key {}", word, word));
    refuse(fmt::format("unexpected '{}': write `--` before the command{}", word, has_key ? "" : ", and --key K"));
  }
  if (!words.unknown.empty())
    refuse_unknown(words.unknown.front(), *words.subcommand);
  for (const Given& given : words.options) {
    if (!given.option->belongs_to(words.subcommand->id))
      refuse(fmt::format("--{} is not an option of {}", given.option->name, words.subcommand->name));
  }
  if (words.incomplete != nullptr)
    refuse(fmt::format("--{} needs a value", words.incomplete->name));
  check_consistency(words.options);
}

void take_positional_keys(const Words& words, Settings& settings) {
  if (words.plain.empty())
    return;
  const auto refuse_key = [&](const std::string& word, std::string_view why) {
    refuse(fmt::format("unexpected '{}': {}", redis::mask_password(word), why));
  };
  if (words.subcommand->id == Subcommand::check)
    refuse_key(words.plain[0], "check looks at servers, not at locks");
  const bool acquires = words.subcommand->id == Subcommand::acquire;
  const std::string_view no_command = "acquire takes one key and no command; `rlock run` runs a command";
  if (words.find("key") != nullptr)
    refuse_key(words.plain[0], acquires ? no_command : "the key is given by --key already");
  const bool several = words.subcommand->id == Subcommand::status || words.subcommand->id == Subcommand::log;
  if (words.plain.size() > 1 && !several)
    refuse_key(words.plain[1], acquires ? no_command : "one key is enough");
  settings.keys = words.plain;
  settings.key_origin = Settings{}.key_origin;
}

/// `rlock --help`, `rlock SUBCOMMAND --help`, `rlock help SUBCOMMAND`.
std::optional<std::string> find_help(const Words& words) {
  const bool asked = words.subcommand == nullptr && !words.plain.empty() && words.plain.front() == "help";
  const SubcommandEntry* about = asked && words.plain.size() > 1 ? find_subcommand(words.plain[1]) : words.subcommand;
  const bool about_all = asked && (words.plain.size() == 1 || words.plain[1] == "help");
  if (words.find("help") != nullptr || about_all || (asked && about != nullptr))
    return about == nullptr ? usage() : help(*about);
  if (words.find("version") != nullptr)
    return "rlock " RLOCK_VERSION "\n";
  return std::nullopt;
}

/// Why a line that has no valid subcommand and asks for no help is wrong.
std::string describe_fault(const Words& words) {
  auto plain = words.plain.begin();
  if (plain != words.plain.end() && *plain == "help")
    ++plain;
  if (plain != words.plain.end())
    return fmt::format("unknown subcommand '{}'{}", redis::mask_password(*plain), suggest_subcommand(*plain));
  if (!words.unknown.empty())
    return describe_unknown(words.unknown.front(), nullptr);
  if (!words.command.empty())
    return "no subcommand before `--`";
  return words.options.empty() ? "no subcommand" : "no subcommand, only options";
}

/// The configuration file that is asked for, if there is one.
std::optional<Value> chosen_config(const Words& words) {
  if (const Given* given = words.find("config"))
    return given->values.back();
  if (const auto file = from_environment("RLOCK_CONFIG"))
    return Value{.text = *file, .origin = "RLOCK_CONFIG"};
  return std::nullopt;
}

}  // namespace

Settings read_settings(const Words& words) {
  const Subcommand subcommand = words.subcommand->id;
  auto files = read_config_files(chosen_config(words), subcommand);
  std::vector<Layer> layers = std::move(files.layers);
  layers.push_back(read_environment(subcommand));
  layers.push_back(words.options);
  Settings settings = merge(layers);
  settings.exposed_files = std::move(files.exposed);
  settings.writable_files = std::move(files.writable);
  take_positional_keys(words, settings);
  return settings;
}

void blot_passwords(int argc, char** argv) {
  for (int i = 1; i < argc && argv[i] != std::string_view{"--"}; ++i) {
    const std::span<char> word{argv[i], std::strlen(argv[i])};
    if (std::string_view{argv[i]}.find("://") != std::string_view::npos)
      redis::blot_password(word);
  }
}

Invocation parse_arguments(int argc, const char* const* argv) {
  const Words words = read_words(argc, argv);
  Invocation invocation;
  invocation.text = find_help(words);
  if (invocation.text)
    return invocation;
  if (words.subcommand == nullptr) {
    invocation.fault = describe_fault(words);
    invocation.text = usage();
    return invocation;
  }
  check_words(words);
  invocation.subcommand = words.subcommand->id;
  invocation.settings = read_settings(words);
  invocation.command = words.command;
  if (words.subcommand->id == Subcommand::run && words.command.empty())
    refuse("no command; write `rlock run --key K -- COMMAND`");
  return invocation;
}

}  // namespace rlock::cli
