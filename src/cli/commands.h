#pragma once

#include <string>
#include <vector>

#include "base/exit_code.h"
#include "cli/settings.h"

namespace rlock::cli {

/// Calls the subcommand that the command line names.
ExitCode dispatch(Invocation invocation);

/// The subcommands: each returns the exit status, and throws Error for a failure.
ExitCode run(const Settings& settings, std::vector<std::string> command);
ExitCode acquire(const Settings& settings);
ExitCode renew(const Settings& settings);
ExitCode release(const Settings& settings);
ExitCode status(const Settings& settings);
ExitCode log(const Settings& settings);
ExitCode check(const Settings& settings);

}  // namespace rlock::cli
