#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/settings.h"

namespace rlock::cli {

/// The values that one source, such as a file or the command line, gives for one option. Without values it only
/// overrides those of weaker sources.
struct Given {
  const Option* option;
  std::vector<Value> values;
};

/// Everything that one source gives, with each option at most once.
using Layer = std::vector<Given>;

/// Reads RLOCK_REDIS (URLs separated by spaces) or else REDIS_URL, and the variable of every other option.
Layer read_environment(Subcommand subcommand);

/// Throws Error{usage or config}, as the option's source says, for an option that one source gives twice, and for two
/// that contradict each other (--wait and --nonblock).
void check_consistency(const Layer& layer);

/// Applies the layers, the weakest first. An option of a stronger layer replaces the same option, and those that
/// contradict it, of weaker ones. Throws the same Error for a value that makes no sense.
Settings merge(std::span<const Layer> layers);

/// The password in the environment: RLOCK_PASSWORD, or else REDISCLI_AUTH.
std::optional<std::string> password_from_environment();

/// The variable's value, if it is set and not empty.
std::optional<std::string> from_environment(const char* variable);

}  // namespace rlock::cli
