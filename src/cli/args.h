#pragma once

#include "cli/settings.h"
#include "cli/words.h"

namespace rlock::cli {

/// Reads the command line, and beneath it the environment and the configuration files. Throws Error{usage} that names
/// the option at fault.
Invocation parse_arguments(int argc, const char* const* argv);

/// Overwrites the passwords of URLs in our own arguments, which ps shows for as long as we run.
void blot_passwords(int argc, char** argv);

/// Files, then the environment, then the command line: each outranks what comes before it.
Settings read_settings(const Words& words);

}  // namespace rlock::cli
