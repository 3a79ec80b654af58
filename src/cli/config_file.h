#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config.h"

namespace rlock::cli {

/// What the configuration files say to one subcommand, the weakest layer first.
struct FileLayers {
  std::vector<Layer> layers;
  std::vector<std::string> exposed;   // files that contain a password and that others can read
  std::vector<std::string> writable;  // files that others can write
};

/// Reads `chosen`, or, without one, /etc/rlock.conf and then $XDG_CONFIG_HOME/rlock.conf (~/.config) where they exist.
/// Throws Error{config} that names the file, and the line.
FileLayers read_config_files(const std::optional<Value>& chosen, Subcommand subcommand);

/// Parses one file: lines of `option = value`, and comment lines that start with `#`. Returns two layers: the lines
/// above every [subcommand], which are for all subcommands, and those under the section of this one, which outrank
/// them. The lines of other subcommands are checked too. Nothing is expanded or run.
std::vector<Layer> parse_config(std::string_view text, const std::string& file, Subcommand subcommand);

}  // namespace rlock::cli
