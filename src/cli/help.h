#pragma once

#include <string>
#include <string_view>

#include "cli/options.h"
#include "cli/subcommand.h"

namespace rlock::cli {

/// What the option means for the subcommand, or in general for nullptr, as --help and the completions say it.
std::string_view meaning(const Option& option, const SubcommandEntry* subcommand);

/// The text of `rlock --help`: all subcommands in short.
std::string usage();

/// One line that names the subcommands.
std::string short_usage();

/// The text of `rlock SUBCOMMAND --help`. No line is wider than 80 columns.
std::string help(const SubcommandEntry& subcommand);

}  // namespace rlock::cli
