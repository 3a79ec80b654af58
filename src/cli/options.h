#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/settings.h"

namespace rlock::cli {

/// One value as it was given, and where, so that an error can name the place.
struct Value {
  std::string text;
  std::string origin;  // "--ttl", "RLOCK_TIMEOUT" or "/etc/rlock.conf:3: ttl"
  ExitCode fault = ExitCode::usage;

  [[noreturn]] void refuse(std::string_view why) const;
  Milliseconds duration() const;
  Milliseconds duration(Milliseconds low, Milliseconds high, std::string_view hint = {}) const;
  long long number(long long low, long long high) const;
  /// yes or no.
  bool flag() const;
  /// Any bytes, but not without end.
  const std::string& words() const;
};

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
