#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config.h"

namespace rlock::cli {

/// What configuration files say to one subcommand, the weakest first.
struct FileLayers {
  std::vector<Layer> layers;
  std::vector<std::string> exposed;   // files with a password in them that others can read
  std::vector<std::string> writable;  // by others
};

/// Reads `chosen`, or, without one, /etc/rlock.conf and then $XDG_CONFIG_HOME/rlock.conf (~/.config) where they exist.
/// Throws Error{config} that names the file, and the line.
FileLayers read_config_files(const std::optional<std::string>& chosen, Subcommand subcommand);

/// One file's text: `option = value` lines, `#` at the start of a comment line. What stands above every [subcommand]
/// goes to all, what stands under one to that alone, and outranks it: the two layers. Every line is checked, whoever it
/// is for. Nothing is expanded or run.
std::vector<Layer> parse_config(std::string_view text, const std::string& file, Subcommand subcommand);

}  // namespace rlock::cli
