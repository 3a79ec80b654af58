#pragma once

#include <string>
#include <vector>

#include "cli/help.h"
#include "cli/options.h"

namespace rlock::cli {

/// The words of the command line in their rooms.
struct Words {
  const Verb* verb = nullptr;
  std::string unknown_verb;              // what stood in its place
  std::vector<std::string> options;      // with their values, as they were written
  std::vector<const Option*> mentioned;  // by them, each once
  std::vector<std::string> keys;         // neither, but the subcommand's name
  std::vector<std::string> command;      // after the first "--" of run: its own, byte for byte
  bool help = false;
  bool version = false;
};

/// Options may stand before the subcommand's name too, so that must be looked for.
Words split(int argc, const char* const* argv);

}  // namespace rlock::cli
