#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlock::cli {

/// Bits, so that an option can name several.
enum class Subcommand : unsigned { run = 1, acquire = 2, renew = 4, release = 8, status = 16, log = 32, check = 64 };

/// What the command line and the help need to know about a subcommand.
struct SubcommandEntry {
  std::string_view name;
  Subcommand id;
  std::string_view synopsis;
  std::string_view purpose;
  std::string_view example;      // a few lines, indented
  std::string_view environment;  // a sentence about variables other than those of its options
};

/// In the order of the help.
std::span<const SubcommandEntry> all_subcommands();

/// Returns nullptr for a word that is not a subcommand.
const SubcommandEntry* find_subcommand(std::string_view name);

/// "; did you mean WORD?", or an empty string.
std::string suggest_subcommand(std::string_view word);

}  // namespace rlock::cli
