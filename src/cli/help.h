#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/settings.h"

namespace rlock::cli {

/// One subcommand as the command line and the help know it.
struct Verb {
  std::string_view name;
  Subcommand subcommand;
  std::string_view synopsis;
  std::string_view purpose;
  std::string_view example;      // a few lines, indented
  std::string_view environment;  // the variables that it reads besides those of the connection
};

std::span<const Verb> all_verbs();

/// nullptr for what is no subcommand.
const Verb* find_verb(std::string_view word);

/// "; did you mean WORD?", or nothing.
std::string suggest_verb(std::string_view word);

/// All of them, in short: `rlock --help`.
std::string usage();

/// `rlock SUBCOMMAND --help`. No line is wider than 80 columns.
std::string help(const Verb& verb);

}  // namespace rlock::cli
