#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/config.h"
#include "cli/options.h"
#include "cli/subcommand.h"

namespace rlock::cli {

// Hides how the line is split, which mistakes people make in it, and what is said of each.

/// The words of the command line, sorted by kind.
struct Words {
  const SubcommandEntry* subcommand = nullptr;
  std::vector<std::string> plain;      // neither options nor values: keys, and an unknown subcommand
  Layer options;                       // all known options, including those of other subcommands
  std::vector<std::string> unknown;    // unknown options
  std::size_t before_unknown = 0;      // plain words before the first unknown option; the next may be its value
  const Option* incomplete = nullptr;  // the option at the end whose value is missing
  std::vector<std::string> line;       // all words before the first "--", as they were given
  bool has_dashes = false;             // there is a "--"
  std::vector<std::string> command;    // what follows the first "--" of `run` or of no subcommand

  const Given* find(std::string_view option) const { return find_given(options, option); }
  /// `rlock help ...`, where a subcommand may follow.
  bool asks_for_help() const { return subcommand == nullptr && !plain.empty() && plain.front() == "help"; }
};

/// Splits the line as getopt_long(3) would, except that long names cannot be abbreviated, and that the first "--" ends
/// the options even where a value is due. Options may stand before the subcommand's name too. The letter -n has two
/// meanings, and the subcommand decides which counts: --lines for log, --nonblock for all others.
Words read_words(std::span<const char* const> given);

/// What main() was asked to do.
struct Invocation {
  const SubcommandEntry* subcommand = nullptr;
  Settings settings;
  std::optional<std::string> text;   // of --help or --version, to be printed instead of anything else
  std::optional<std::string> fault;  // why there is no subcommand to run, to be printed on stderr with the text
};

/// Reads the command line, the environment and the configuration files. Throws Error{usage} that names the option at
/// fault, or Error{config} that names the file.
Invocation parse_arguments(int argc, const char* const* argv);

/// Overwrites the passwords of URLs in our own arguments, so that ps no longer shows them.
void blot_passwords(int argc, char** argv);

/// What these words, the environment and the configuration files ask for.
Settings read_settings(const Words& words);

/// Whether these words ask for output that a shell evaluates: acquire --output shell, or a word that may be meant for
/// it. It looks at the words alone, so that it also knows when they, or the configuration, are wrong.
bool is_for_eval(const std::vector<std::string_view>& words);

}  // namespace rlock::cli
