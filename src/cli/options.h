#pragma once

#include <signal.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/calendar.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/log.h"
#include "base/timestamp.h"
#include "cli/subcommand.h"
#include "cli/value.h"
#include "lock/request.h"
#include "lock/token.h"
#include "redis/address.h"
#include "run/plan.h"

namespace rlock::cli {

enum class Output { token, shell, json };

/// Since when runs are shown: a time, or how long ago.
using Since = std::variant<Milliseconds, WallTime>;

/// How messages call a name of a lock that no option names.
constexpr std::string_view positional_key = "the key";

/// Everything that the command line, the environment and configuration files can set, and what was noticed while they
/// were read. Each value has been checked by itself, but not yet against the others.
struct Settings {
  std::vector<redis::Address> redis;
  std::string username;
  std::string password_file;
  std::string prefix = "rlock:";
  redis::TlsOptions tls;
  Milliseconds timeout{2000};
  Milliseconds max_lease{60'000};
  Verbosity verbosity = Verbosity::normal;

  std::vector<std::string> keys;
  std::string key_origin{positional_key};  // or "--key"
  std::optional<lock::Token> token;
  bool token_from_stdin = false;

  std::optional<Milliseconds> ttl;
  Milliseconds lease() const { return ttl.value_or(Milliseconds{30'000}); }
  bool nonblock = false;
  std::optional<Milliseconds> wait;
  ExitCode conflict = ExitCode::conflict;
  bool shared = false;
  std::optional<int> slots;
  Milliseconds min_hold{0};
  std::optional<int> max_waiting;
  bool latest = false;
  bool first = false;
  bool replace = false;
  std::optional<std::string> once;
  std::optional<Milliseconds> once_per;  // or the period
  std::optional<Period> period;
  std::optional<lock::Cooldown> backoff;
  std::optional<int> attempts;
  std::optional<lock::Replicas> replicas;
  std::string holder;
  std::string note;
  bool no_command = false;

  std::vector<std::string> command;  // of `run`
  std::optional<Milliseconds> renew_every;
  std::optional<Milliseconds> kill_after;
  std::optional<Milliseconds> max_runtime;
  int first_signal = SIGTERM;
  run::OnLost on_lost = run::OnLost::kill;
  run::AtEnd at_end = run::AtEnd::leave;
  std::optional<std::string> report;

  Output output = Output::token;
  std::optional<int> hold_pid;
  std::optional<lock::HoldEnd> hold_end;
  bool end = false;
  bool force = false;
  bool now = false;
  std::optional<lock::Fence> fence;
  bool json = false;
  bool prometheus = false;
  bool all = false;
  bool watch = false;
  std::optional<int> lines;
  std::optional<Since> since;
  bool failed = false;
  bool follow = false;
  bool timeline = false;

  // What was noticed:
  std::map<std::string_view, std::string> places;  // of each option that is set: FILE:LINE, if a file says so, else ""
  bool ignores_sigchld = false;           // rlock was started with SIGCHLD ignored, and its command must be too
  std::vector<std::string> doubts;        // warnings of what was probably meant otherwise
  std::vector<std::string> secret_files;  // configuration files with a password
  std::vector<std::string> handed_on;     // NAME=value for a nested rlock, but for the servers and the prefix
  std::string server_words;               // the options of the command line that tell which Redis, to be repeated
};

constexpr const char* redis_variable = "RLOCK_REDIS";
constexpr const char* prefix_variable = "RLOCK_PREFIX";

/// The parts of --help. An option that few people need is under `advanced`, whatever it is about.
enum class Section { lock, command, redis, output, advanced };

/// One option: its names, the subcommands that take it, its meaning and how it is read. The table of options serves the
/// command line, the environment, the configuration files, nested runs, --help and the completions.
struct Option {
  char letter;             // '\0' when there is none
  std::string_view name;   // "ttl"
  std::string_view value;  // as --help shows it: "D", "FILE", or words to choose from, "kill|warn"; a flag has none
  unsigned subcommands;    // bits of Subcommand
  Section section;
  std::string_view environment;  // its variable; empty when there is none
  std::string_view help;
  void (*set)(Settings&, const Value&);  // nullptr for one that is no setting: --config, --help, --version

  bool is_flag() const { return value.empty(); }
  bool is_file() const { return value == "FILE"; }
  bool belongs_to(Subcommand subcommand) const { return (subcommands & static_cast<unsigned>(subcommand)) != 0; }
  bool may_repeat() const { return name == "redis"; }
  /// The words to choose from; empty where any value may be given.
  std::vector<std::string_view> choices() const;
  /// Prepares a value for `set`: finds its index among the words, and makes the name of a file absolute. Throws Error
  /// for a value that is none of the words.
  Value resolve(Value given) const;
};

std::span<const Option> all_options();

/// Finds an option by its long name, without the dashes, or by its letter; nullptr for an unknown one. Of two options
/// with the same letter the one of the subcommand is preferred.
const Option* find_option(std::string_view name);
const Option* find_option(char letter, const SubcommandEntry* subcommand);

/// "; did you mean --ttl?" with the option nearest to `word` among those that may be meant, or an empty string.
std::string suggest_option(std::string_view word,
                           std::string_view dashes,
                           const std::function<bool(const Option&)>& may);

}  // namespace rlock::cli
