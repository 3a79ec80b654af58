#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/settings.h"

namespace rlock::cli {

/// What one source says of one option. No values: the source says that what weaker ones say does not count.
struct Given {
  const Option* option;
  std::vector<Value> values;
};

/// Everything that one source says, each option at most once.
using Layer = std::vector<Given>;

/// RLOCK_REDIS (URLs separated by spaces), then REDIS_URL, and the variable of each option.
Layer read_environment(Subcommand subcommand);

/// Throws for an option that one source gives twice, and for two that contradict each other (--wait and --nonblock).
void check_consistency(const Layer& layer);

/// Applies the layers, the weakest first: what a stronger one says of an option, or of one that contradicts it,
/// replaces what the weaker ones say. Throws for a value that makes no sense.
Settings merge(std::span<const Layer> layers);

/// The password that the environment gives: RLOCK_PASSWORD, then REDISCLI_AUTH.
std::optional<std::string> password_from_environment();

/// The variable's value, if it is set and not empty.
std::optional<std::string> from_environment(const char* variable);

}  // namespace rlock::cli
