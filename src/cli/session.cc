#include "cli/session.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "cli/config.h"

namespace rlock::cli {
namespace {

void warn_if_others_can_read(const std::string& file, const Log& log) {
  struct stat info {};
  if (::stat(file.c_str(), &info) < 0 || (info.st_mode & (S_IRGRP | S_IROTH)) == 0) return;
  log.error(fmt::format("warning: password file {} can be read by others; chmod 600 it", file));
}

}  // namespace

redis::Address choose_server(const Settings& settings, const Log& log) {
  redis::Address address =
      settings.redis.empty() ? redis::parse_address("redis://127.0.0.1:6379/0") : settings.redis.front();
  redis::Credentials& who = address.credentials;
  if (who.password && settings.redis_on_command_line) {
    log.error("warning: a password on the command line can be read by others; use --password-file or RLOCK_PASSWORD");
  }
  if (who.user.empty()) who.user = settings.username;
  if (!who.password) {
    who.password_file = settings.password_file;
    who.password = password_from_environment();
  }
  if (!who.password_file.empty()) {
    (void)who.current_password();  // now, rather than when a renewal needs it
    warn_if_others_can_read(who.password_file, log);
  }
  return address;
}

lock::LockName choose_lock(const Settings& settings, bool or_environment) {
  if (!settings.keys.empty()) return {settings.prefix, settings.keys.front()};
  const auto key = or_environment ? from_environment("RLOCK_KEY") : std::nullopt;
  if (!key) throw Error{ExitCode::usage, or_environment ? "no --key, and no RLOCK_KEY" : "no --key"};
  return {settings.prefix, *key};
}

lock::Token choose_token(const Settings& settings) {
  if (settings.token) return *settings.token;
  const auto text = from_environment("RLOCK_TOKEN");
  if (!text) throw Error{ExitCode::usage, "no --token, and no RLOCK_TOKEN"};
  const auto token = lock::Token::parse(*text);
  if (!token) throw Error{ExitCode::usage, "RLOCK_TOKEN: not a token: 32 hexadecimal digits, as acquire prints it"};
  return *token;
}

lock::Capacity choose_capacity(const Settings& settings) {
  if (settings.shared && settings.exclusive) throw Error{ExitCode::usage, "--shared and --exclusive: choose one"};
  if (settings.shared && settings.slots) throw Error{ExitCode::usage, "--shared and --slots: choose one"};
  if (settings.shared) return lock::shared;
  if (settings.exclusive && settings.slots.value_or(1) != 1) {
    throw Error{ExitCode::usage, "--exclusive and --slots: choose one"};
  }
  return lock::Capacity{settings.slots.value_or(1)};
}

lock::Patience choose_patience(const Settings& settings) {
  lock::Patience patience{.timeout = settings.timeout, .wait = settings.wait};
  if (settings.nonblock) patience.wait = Milliseconds{0};
  return patience;
}

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw os_error("cannot write to stdout", errno);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace rlock::cli
