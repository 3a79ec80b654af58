#include "cli/session.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "cli/config.h"

namespace rlock::cli {
namespace {

bool others_can_read(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & (S_IRGRP | S_IROTH)) != 0;
}

void warn_of_exposed_secrets(const Settings& settings, const Log& log) {
  const auto warn = [&log](std::string_view what, const std::string& file) {
    log.error(fmt::format("warning: {} {} can be read by others; chmod 600 it", what, file));
  };
  const std::string& key = settings.tls.key_file();
  if (!settings.password_file.empty() && others_can_read(settings.password_file))
    warn("password file", settings.password_file);
  if (!key.empty() && others_can_read(key))
    warn("the private key in", key);
  for (const std::string& file : settings.exposed_files) warn("the URL's password in configuration file", file);
  for (const std::string& file : settings.writable_files)
    log.error(fmt::format("warning: configuration file {} can be written by others; chmod o-w it", file));
}

/// Our credentials where the URL has none. A password file is read again for each connection, since passwords change; a
/// pipe can be read only once.
redis::Credentials choose_credentials(const Settings& settings) {
  redis::Credentials who{.user = settings.username, .password = password_from_environment(), .password_file = {}};
  if (settings.password_file.empty())
    return who;
  who.password_file = settings.password_file;
  const auto password = who.current_password();  // fails now if it cannot be read, and not at a later renewal
  if (!std::filesystem::is_regular_file(who.password_file)) {
    who.password = password;
    who.password_file.clear();
  }
  return who;
}

/// Adds our credentials to an address, where a password in its URL takes precedence. With Sentinel, credentials in the
/// URL are for the sentinels only if we have others for the master.
void complete_credentials(redis::Address& address, const redis::Credentials& ours) {
  redis::Credentials& who = address.credentials;
  const bool for_sentinels_only =
      address.kind == redis::Address::Kind::sentinel && (!ours.password_file.empty() || ours.password);
  if (for_sentinels_only)
    who = {};
  if (who.user.empty())
    who.user = ours.user;
  if (who.password)
    return;
  who.password_file = ours.password_file;
  who.password = ours.password;
}

/// A quorum needs independent servers. When Sentinel or a Cluster promotes a replica, grants may be forgotten without a
/// restart, so that the server's uptime does not reveal it.
void check_members(const std::vector<redis::Address>& addresses) {
  if (addresses.size() == 1)
    return;
  for (const redis::Address& address : addresses) {
    if (address.kind != redis::Address::Kind::node)
      throw Error{ExitCode::usage,
                  fmt::format("{}: several --redis must be single servers, of which a majority decides; the URL of a "
                              "Sentinel or a Cluster must be the only one",
                              address.url)};
  }
}

/// The first line of standard input, without its end.
std::string read_line() {
  constexpr std::size_t longest = 256;
  std::string line;
  for (char c = 0; line.size() < longest;) {
    const ssize_t count = ::read(STDIN_FILENO, &c, 1);  // byte by byte, since the rest belongs to the script
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      throw os_error("cannot read the token from standard input", errno);
    if (count == 0 || c == '\n')
      break;
    line += c;
  }
  return line;
}

/// Checks that --slots is used with a single server only.
lock::Capacity choose_capacity(const Settings& settings) {
  if (settings.shared)
    return lock::shared;
  if (settings.slots.value_or(1) > 1 && settings.redis.size() > 1)
    throw Error{ExitCode::usage, "--slots is for one --redis; with several servers, more than N could hold at once"};
  return lock::Capacity{settings.slots.value_or(1)};
}

/// Checks that --replicas is used with a single server only.
std::optional<lock::Replicas> choose_replicas(const Settings& settings) {
  if (settings.replicas && settings.redis.size() > 1)
    throw Error{ExitCode::usage, "--replicas is for one --redis; with several servers a majority has the lock anyway"};
  return settings.replicas;
}

}  // namespace

std::vector<redis::Server> choose_servers(const Settings& settings, const Log& log, redis::ReplyLimits limits) {
  std::vector<redis::Address> addresses = settings.redis;
  if (addresses.empty())
    addresses.push_back(redis::parse_address("redis://127.0.0.1:6379/0"));
  check_members(addresses);
  const redis::Credentials ours = choose_credentials(settings);
  std::vector<redis::Server> servers;
  for (redis::Address& address : addresses) {
    complete_credentials(address, ours);
    if (address.tls)
      address.tls = settings.tls;
    log.step(fmt::format("using {}", address.bare_url));
    servers.emplace_back(address, limits, log);
  }
  const bool shown = std::any_of(
      settings.redis.begin(), settings.redis.end(), [](const redis::Address& a) { return a.url != a.bare_url; });
  if (shown && settings.redis_origin == "--redis") {
    log.error("warning: a password on the command line can be read by others; use --password-file or RLOCK_PASSWORD");
  }
  warn_of_exposed_secrets(settings, log);
  return servers;
}

lock::LockName choose_lock(const Settings& settings, bool or_environment) {
  if (!settings.keys.empty())
    return {settings.prefix, settings.keys.front(), settings.key_origin};
  const auto key = or_environment ? from_environment("RLOCK_KEY") : std::nullopt;
  if (!key)
    throw Error{ExitCode::usage, or_environment ? "no --key, and no RLOCK_KEY" : "no --key"};
  return {settings.prefix, *key, "RLOCK_KEY"};
}

lock::Token choose_token(const Settings& settings) {
  if (settings.token)
    return *settings.token;
  const auto text = settings.token_from_stdin ? read_line() : from_environment("RLOCK_TOKEN");
  if (!text)
    throw Error{ExitCode::usage, "no --token, and no RLOCK_TOKEN"};
  const auto token = lock::Token::parse(*text);
  if (!token) {
    throw Error{ExitCode::usage,
                fmt::format("{}: not a token; acquire prints one as 32 hexadecimal digits",
                            settings.token_from_stdin ? "--token -" : "RLOCK_TOKEN")};
  }
  return *token;
}

lock::Claim choose_claim(const Settings& settings, const lock::Owner& owner, Milliseconds ttl, bool kept) {
  return {.token = lock::Token::random(),
          .level = lock::Level::random(),
          .capacity = choose_capacity(settings),
          .ttl = ttl,
          .min_hold = settings.min_hold,
          .replicas = choose_replicas(settings),
          .owner = owner.encode(),
          .kept = kept,
          .latest = settings.latest,
          .replace = settings.replace,
          .max_waiting = settings.max_waiting,
          .once = settings.once,
          .once_per = settings.once_per};
}

lock::Patience choose_patience(const Settings& settings) {
  lock::Patience patience{.timeout = settings.timeout, .wait = settings.wait};
  if (settings.nonblock)
    patience.wait = Milliseconds{0};
  return patience;
}

void check_quorum_times(const Settings& settings, Milliseconds ttl) {
  if (settings.redis.size() <= 1)
    return;
  const auto check = [&settings](std::string_view option, Milliseconds duration) {
    if (duration <= settings.max_lease)
      return;
    throw Error{ExitCode::usage,
                fmt::format("{} {} is longer than --max-lease {}, which several --redis need",
                            option,
                            format_limit(duration),
                            format_limit(settings.max_lease))};
  };
  check("--ttl", ttl);
  check("--min-hold", settings.min_hold);
}

observe::Scope choose_scope(const Settings& settings) {
  observe::Scope scope{.prefix = settings.prefix};
  for (const std::string& word : settings.keys) {
    if (observe::is_pattern(word)) {
      scope.patterns.push_back(word);
    } else {
      scope.names.emplace_back(settings.prefix, word, settings.key_origin);
    }
  }
  return scope;
}

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      throw os_error("cannot write to stdout", errno);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace rlock::cli
