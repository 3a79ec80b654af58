#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cli/settings.h"
#include "cli/value.h"

namespace rlock::cli {

constexpr const char* redis_variable = "RLOCK_REDIS";
constexpr const char* prefix_variable = "RLOCK_PREFIX";

/// One option: its names, the subcommands that take it, its meaning and how it is read. The table of options serves the
/// command line, the environment, the configuration files, nested runs, --help and the completions.
struct Option {
  char letter;             // '\0' when there is none
  std::string_view name;   // "ttl"
  std::string_view value;  // as --help shows it: "D", "FILE", or words to choose from, "kill|warn"; a flag has none
  unsigned subcommands;    // bits of Subcommand
  std::string_view environment;  // its variable; empty when there is none
  std::string_view help;
  void (*set)(Settings&, const Value&);  // nullptr for one that is no setting: --config, --help, --version

  bool is_flag() const { return value.empty(); }
  bool is_file() const { return value == "FILE"; }
  bool belongs_to(Subcommand subcommand) const { return (subcommands & static_cast<unsigned>(subcommand)) != 0; }
  bool may_repeat() const { return name == "redis"; }
  /// The words to choose from; empty where any value may be given.
  std::vector<std::string_view> choices() const;
  /// Prepares a value for `set`: finds its index among the words, and makes the name of a file absolute. Throws Error
  /// for a value that is none of the words.
  Value resolve(Value given) const;
};

std::span<const Option> all_options();

/// Finds an option by its long name, without the dashes, or by its letter; nullptr for an unknown one. Of two options
/// with the same letter the one of the subcommand is preferred.
const Option* find_option(std::string_view name);
const Option* find_option(char letter, std::optional<Subcommand> subcommand);

}  // namespace rlock::cli
