#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "cli/settings.h"

namespace rlock::cli {

/// A subcommand, with what the command line and the help need to know about it.
struct Verb {
  std::string_view name;
  Subcommand subcommand;
  std::string_view synopsis;
  std::string_view purpose;
  std::string_view example;      // a few lines, indented
  std::string_view environment;  // a sentence about variables other than those of its options
};

std::span<const Verb> all_verbs();

/// What the option means for the subcommand, or in general for nullptr, as --help and the completions say it.
std::string_view meaning(const Option& option, const Verb* verb);

/// Returns nullptr for a word that is not a subcommand.
const Verb* find_verb(std::string_view word);

/// "; did you mean WORD?", or an empty string.
std::string suggest_verb(std::string_view word);

/// The text of `rlock --help`: all subcommands in short.
std::string usage();

/// The text of `rlock SUBCOMMAND --help`. No line is wider than 80 columns.
std::string help(const Verb& verb);

}  // namespace rlock::cli
