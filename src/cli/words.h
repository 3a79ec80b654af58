#pragma once

#include <string>
#include <vector>

#include "cli/config.h"
#include "cli/subcommand.h"

namespace rlock::cli {

/// The words of the command line, sorted by kind.
struct Words {
  const SubcommandEntry* subcommand = nullptr;
  std::vector<std::string> plain;      // neither options nor values: keys, and an unknown subcommand
  Layer options;                       // all known options, including those of other subcommands
  std::vector<std::string> unknown;    // unknown options
  bool unknown_first = false;          // an unknown option came before the plain words, which may be its value
  const Option* incomplete = nullptr;  // the option at the end whose value is missing
  std::vector<std::string> command;    // what follows the first "--" of `run` or of no subcommand

  const Given* find(std::string_view option) const;
};

/// Splits the line as getopt_long(3) would, except that long names cannot be abbreviated, and that the first "--" ends
/// the options even where a value is due. Options may stand before the subcommand's name too, where -n is --nonblock.
Words read_words(int argc, const char* const* argv);

}  // namespace rlock::cli
