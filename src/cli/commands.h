#pragma once

#include <string>
#include <vector>

#include "cli/settings.h"

namespace rlock::cli {

/// The subcommands: each returns the exit status, and throws Error for a failure.
int run(const Settings& settings, std::vector<std::string> command);
int acquire(const Settings& settings);
int renew(const Settings& settings);
int release(const Settings& settings);
int status(const Settings& settings);
int log(const Settings& settings);
int check(const Settings& settings);

}  // namespace rlock::cli
