#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/options.h"

namespace rlock::cli {

// How options come from files, the environment and the command line, and which of these outranks which. Hides where the
// files are, how they are written, and who may have written them.

/// The values that one source, such as a file or the command line, gives for one option. Without values it only
/// overrides those of weaker sources.
struct Given {
  const Option* option;
  std::vector<Value> values;
};

/// Everything that one source gives, with each option at most once.
using Layer = std::vector<Given>;

/// What the layer gives for that option; nullptr for nothing.
const Given* find_given(const Layer& layer, std::string_view option);

/// Throws Error{usage or config}, as the option's source says, for an option that one source gives twice, and for two
/// that contradict each other (--wait and --nonblock).
void check_consistency(const Layer& layer);
/// Whether one more option may be given there, as far as that can be told before its value is known.
bool is_consistent_with(const Option& option, const Layer& layer);

/// Applies the layers, the weakest first. An option of a stronger layer replaces the same option, and those that
/// contradict it, of weaker ones. Throws the same Error for a value that makes no sense.
Settings merge(std::span<const Layer> layers);

/// Merges the configuration files, the environment and the options of the command line, each of which outranks the one
/// before it. The files are the one that the command line or RLOCK_CONFIG names, or else /etc/rlock.conf and then
/// $XDG_CONFIG_HOME/rlock.conf (~/.config) where they exist. Throws Error{usage or config} that names the option, the
/// variable or the line at fault; also for a file that somebody else could have written.
Settings read_settings(Subcommand subcommand, const Layer& line);

/// An error about options that are given and do not fit together: if files alone give them, it is a mistake of a file,
/// and is told with the line of the last one.
Error placed(const Settings& settings, std::initializer_list<std::string_view> options, const Error& error);

/// The password in the environment: RLOCK_PASSWORD, or else REDISCLI_AUTH.
std::optional<std::string> password_from_environment();

/// The variable's value, if it is set and not empty.
std::optional<std::string> from_environment(const char* variable);

/// The URLs that RLOCK_REDIS names, separated by spaces.
std::vector<Value> split_urls(std::string_view text);

/// Parses one file: lines of `option = value`, and comment lines that start with `#`. Returns two layers: the lines
/// above every [subcommand], which are for all subcommands, and those under the section of this one, which outrank
/// them. The lines of other subcommands are checked too. Nothing is expanded or run.
std::vector<Layer> parse_config(std::string_view text, const std::string& file, Subcommand subcommand);

}  // namespace rlock::cli
