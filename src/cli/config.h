#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/options.h"
#include "cli/settings.h"

namespace rlock::cli {

/// What the environment says, before the command line: RLOCK_REDIS (URLs separated by spaces), then REDIS_URL, and the
/// variable of each option but those that `overridden` says the command line gives. Throws Error{usage} that names the
/// variable.
void read_environment(Settings& settings, Subcommand subcommand, const std::function<bool(const Option&)>& overridden);

/// The password that the environment gives: RLOCK_PASSWORD, then REDISCLI_AUTH.
std::optional<std::string> password_from_environment();

/// The variable's value, if it is set and not empty.
std::optional<std::string> from_environment(const char* variable);

}  // namespace rlock::cli
