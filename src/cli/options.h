#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cli/settings.h"
#include "cli/value.h"

namespace rlock::cli {

/// One option: its names, where it may stand, what it means, how it is read. The one table behind the command line,
/// the environment, the configuration files, what a nested rlock is handed, --help and the completions.
struct Option {
  char letter;             // '\0': it has none
  std::string_view name;   // "ttl"
  std::string_view value;  // as --help shows it: "D", "FILE", or the words to choose from, "kill|warn"; empty: a flag
  unsigned subcommands;    // bits of Subcommand
  std::string_view environment;  // empty: no variable
  std::string_view help;
  void (*set)(Settings&, const Value&);  // nullptr: it is no setting, and of the command line only

  bool is_flag() const { return value.empty(); }
  bool is_file() const { return value == "FILE"; }
  bool belongs_to(Subcommand subcommand) const { return (subcommands & static_cast<unsigned>(subcommand)) != 0; }
  bool may_repeat() const { return name == "redis"; }
  /// Those to choose from; none where the value is free.
  std::vector<std::string_view> words() const;
  /// The value as `set` takes it: one of the words, a file by its absolute name. Throws Error for none of the words.
  Value resolve(Value given) const;
};

std::span<const Option> all_options();

/// By its long name, without the dashes; nullptr for an unknown one. Of two that share a name or letter the one that
/// belongs to the subcommand counts.
const Option* find_option(std::string_view name);
const Option* find_option(char letter, std::optional<Subcommand> subcommand);

}  // namespace rlock::cli
