#pragma once

#include "cli/settings.h"
#include "cli/words.h"

namespace rlock::cli {

/// Reads the command line, the environment and the configuration files. Throws Error{usage} that names the option at
/// fault, or Error{config} that names the file.
Invocation parse_arguments(int argc, const char* const* argv);

/// Overwrites the passwords of URLs in our own arguments, so that ps no longer shows them.
void blot_passwords(int argc, char** argv);

/// Merges the configuration files, the environment and the command line, of which each outranks the one before it.
Settings read_settings(const Words& words);

}  // namespace rlock::cli
