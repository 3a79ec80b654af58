#pragma once

#include <string>

#include "cli/subcommand.h"

namespace rlock::cli {

/// The text of `rlock --help`: all subcommands in short.
std::string usage();

/// The text of `rlock SUBCOMMAND --help`. No line is wider than 80 columns.
std::string help(const SubcommandEntry& subcommand);

}  // namespace rlock::cli
