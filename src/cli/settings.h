#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "base/log.h"
#include "lock/queue.h"
#include "lock/token.h"
#include "redis/address.h"
#include "run/plan.h"

namespace rlock::cli {

enum class Subcommand : unsigned { run = 1, acquire = 2, renew = 4, release = 8, status = 16, check = 32 };

enum class Output { token, shell, json };

/// Everything that can be said on the command line, in the environment and in configuration files: checked one by one,
/// not yet against each other.
struct Settings {
  std::vector<redis::Address> redis;
  bool redis_on_command_line = false;
  std::string config;
  std::vector<std::string> exposed_files;  // with a password in them, and others can read them
  std::string username;
  std::string password_file;
  std::string prefix = "rlock:";
  redis::TlsOptions tls;
  Milliseconds timeout{2000};
  Milliseconds max_lease{60'000};
  Verbosity verbosity = Verbosity::normal;

  std::vector<std::string> keys;
  std::optional<lock::Token> token;

  std::optional<Milliseconds> ttl;
  bool nonblock = false;
  std::optional<Milliseconds> wait;
  ExitCode conflict = ExitCode::conflict;
  bool shared = false;
  bool exclusive = false;
  std::optional<int> slots;
  Milliseconds min_hold{0};
  std::optional<lock::Replicas> replicas;
  std::string holder;
  std::string note;

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
  std::optional<lock::Fence> fence;
  bool json = false;
  bool watch = false;
};

/// What main() was asked to do.
struct Invocation {
  Subcommand subcommand{};
  Settings settings;
  std::vector<std::string> command;  // of run
  std::optional<std::string> text;   // --help or --version: print this and nothing else
  std::optional<std::string> fault;  // no subcommand, or an unknown one: say so, and print the text on stderr
};

}  // namespace rlock::cli
