#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "cli/subcommand.h"
#include "lock/claim.h"
#include "lock/token.h"
#include "redis/address.h"
#include "run/command.h"

namespace rlock::cli {

enum class Output { token, shell, json };

/// Everything that the command line, the environment and configuration files can set. Each value has been checked by
/// itself, but not yet against the others.
struct Settings {
  std::vector<redis::Address> redis;
  std::string redis_origin;                 // of the last URL: "--redis", "RLOCK_REDIS"; empty for the default
  std::vector<std::string> writable_files;  // configuration files that others can write
  std::vector<std::string> exposed_files;   // configuration files that contain a password and that others can read
  std::string username;
  std::string password_file;
  std::string prefix = "rlock:";
  redis::TlsOptions tls;
  Milliseconds timeout{2000};
  Milliseconds max_lease{60'000};
  Verbosity verbosity = Verbosity::normal;
  /// NAME=value for a nested rlock, of every option with a variable but the servers and the prefix.
  std::vector<std::string> handed_on;

  std::vector<std::string> keys;
  std::string key_origin = "the key";  // "--key", or how messages call one that no option names
  std::optional<lock::Token> token;
  bool token_from_stdin = false;

  Milliseconds ttl{30'000};
  bool nonblock = false;
  std::optional<Milliseconds> wait;
  ExitCode conflict = ExitCode::conflict;
  bool shared = false;
  bool exclusive = false;
  std::optional<int> slots;
  Milliseconds min_hold{0};
  std::optional<int> max_waiting;
  bool latest = false;
  bool replace = false;
  std::optional<std::string> once;
  std::optional<Milliseconds> once_per;
  std::optional<lock::Replicas> replicas;
  std::string holder;
  std::string note;
  bool no_command = false;

  std::optional<Milliseconds> renew_every;
  std::optional<Milliseconds> kill_after;
  std::optional<Milliseconds> max_runtime;
  int first_signal = SIGTERM;
  run::OnLost on_lost = run::OnLost::kill;
  run::AtEnd at_end = run::AtEnd::leave;
  std::optional<std::string> report;

  Output output = Output::token;
  std::optional<int> hold_pid;
  bool force = false;
  bool now = false;
  std::optional<lock::Fence> fence;
  bool json = false;
  bool prometheus = false;
  bool watch = false;
  std::optional<int> lines;
  std::optional<Milliseconds> since;
  bool timeline = false;
};

/// What main() was asked to do.
struct Invocation {
  Subcommand subcommand{};
  Settings settings;
  std::vector<std::string> command;  // the command of `run`
  std::optional<std::string> text;   // of --help or --version, to be printed instead of anything else
  std::optional<std::string> fault;  // why there is no subcommand to run, to be printed on stderr with the text
};

}  // namespace rlock::cli
