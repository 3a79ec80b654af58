#pragma once

#include <span>
#include <string_view>

#include "cli/settings.h"
#include "cli/value.h"

namespace rlock::cli {

/// One option: its names, where it may stand, what it means, how it is read. The one table behind the command line,
/// the environment, the configuration files and --help.
struct Option {
  std::string_view names;  // "-t,--ttl"
  std::string_view value;  // "D" in the help; empty: a flag
  unsigned subcommands;    // bits of Subcommand
  std::string_view environment;
  std::string_view help;
  void (*set)(Settings&, const Value&);

  bool is_flag() const { return value.empty(); }
  bool belongs_to(Subcommand subcommand) const { return (subcommands & static_cast<unsigned>(subcommand)) != 0; }
  /// "--ttl"
  std::string_view long_name() const { return names.substr(names.find("--")); }
};

std::span<const Option> all_options();

}  // namespace rlock::cli
