#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace rlock::cli {

struct Settings;

/// The subcommands: each returns the exit status, and throws Error for a failure.
ExitCode run(const Settings& settings);
ExitCode acquire(const Settings& settings);
ExitCode renew(const Settings& settings);
ExitCode release(const Settings& settings);
ExitCode hold(const Settings& settings);
ExitCode status(const Settings& settings);
ExitCode log(const Settings& settings);
ExitCode check(const Settings& settings);

/// Bits, so that an option can name several.
enum class Subcommand : unsigned {
  run = 1,
  acquire = 2,
  renew = 4,
  release = 8,
  status = 16,
  log = 32,
  check = 64,
  hold = 128
};

/// How many names of locks a subcommand takes.
enum class Keys { none, one, several };

/// A word that a subcommand prints, and what it means.
struct Term {
  std::string_view word;
  std::string_view meaning;
};

/// A subcommand: the table of them serves the command line, --help, the completions and main().
struct SubcommandEntry {
  std::string_view name;
  Subcommand id;
  ExitCode (*call)(const Settings&);
  Keys keys;
  std::string_view synopsis;
  std::string_view purpose;
  std::string_view example;      // a few lines, indented
  std::string_view environment;  // a sentence about variables other than those of its options
  std::string_view statuses;     // a sentence about its own exit statuses
  std::string_view words;        // sentences about what it takes and does
  std::string_view heading{};    // of the terms
  std::span<const Term> terms{};
};

/// In the order of the help.
std::span<const SubcommandEntry> all_subcommands();

/// Returns nullptr for a word that is not a subcommand.
const SubcommandEntry* find_subcommand(std::string_view name);

/// Whether other tools have a subcommand of that name, for which suggest_subcommand() names ours.
bool is_subcommand_elsewhere(std::string_view word);

/// "; did you mean WORD?", or an empty string.
std::string suggest_subcommand(std::string_view word);

}  // namespace rlock::cli
