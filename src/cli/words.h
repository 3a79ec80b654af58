#pragma once

#include <string>
#include <vector>

#include "cli/config.h"
#include "cli/help.h"

namespace rlock::cli {

/// The words of the command line, each where it belongs.
struct Words {
  const Verb* verb = nullptr;
  std::vector<std::string> plain;    // neither options nor values: the subcommand's name, if that is unknown, and keys
  Layer options;                     // all that are known, also those of other subcommands
  std::vector<std::string> unknown;  // options
  bool unknown_first = false;        // they stand before what is plain: that may be their value
  std::string incomplete;            // the option at the end that lacks its value
  std::vector<std::string> command;  // after the first "--" of run: its own, byte for byte

  const Given* find(std::string_view option) const;
};

/// Splits the line as getopt_long(3) would. Options may stand before the subcommand's name too.
Words read_words(int argc, const char* const* argv);

}  // namespace rlock::cli
