#pragma once

#include "cli/settings.h"

namespace rlock::cli {

/// Reads the command line, and beneath it the environment. Throws Error{usage} that names the option at fault.
Invocation parse_arguments(int argc, const char* const* argv);

}  // namespace rlock::cli
