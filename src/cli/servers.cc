#include "cli/servers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/trust.h"
#include "cli/config.h"
#include "lock/quorum.h"

namespace rlock::cli {
namespace {

bool others_can_read(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & (S_IRGRP | S_IROTH)) != 0;
}

/// With --quiet only on a terminal: cron would mail each of them with every run.
void warn_of_exposed_secrets(const Settings& settings, const Log& log) {
  if (settings.verbosity == Verbosity::quiet && ::isatty(STDERR_FILENO) == 0)
    return;
  const auto is_exposed = [](const redis::Address& a) { return a.origin == "--redis" && a.credentials.password; };
  if (std::any_of(settings.redis.begin(), settings.redis.end(), is_exposed))
    log.error("warning: a password on the command line can be read by others; use --password-file or RLOCK_PASSWORD");
  const auto warn = [&log](std::string_view what, const std::string& file) {
    log.error(fmt::format("warning: {} {} can be read by others; chmod 600 it", what, file));
  };
  const std::string& key = settings.tls.key_file();
  if (!settings.password_file.empty() && others_can_read(settings.password_file))
    warn("password file", settings.password_file);
  if (!key.empty() && others_can_read(key))
    warn("the private key in", key);
  for (const std::string& file : settings.secret_files) {
    if (others_can_read(file))
      warn("the URL's password in configuration file", file);
  }
}

/// Whoever can change one of these can read the password that we send, or be us. What SSL_CERT_FILE and SSL_CERT_DIR
/// name is taken as it is, as every program takes it.
void check_tls_files(const redis::TlsOptions& tls) {
  const auto must_be_ours = [](const std::string& option, const std::string& file) {
    if (!file.empty())
      check_trusted(file, fmt::format("{} {}", option, file));
  };
  must_be_ours("--cacert", tls.ca);
  if (!tls.ca.empty()) {
    std::error_code error;  // if it is no directory
    for (std::filesystem::directory_iterator at{tls.ca, error}, end; !error && at != end; at.increment(error)) {
      std::error_code unreadable;
      if (!at->is_directory(unreadable))
        must_be_ours("--cacert", at->path());
    }
  }
  must_be_ours("--cert", tls.certificate);
  must_be_ours("--tls-key", tls.key);
}

/// Our credentials where the URL has none. A password file is read again for each connection, since passwords change; a
/// pipe can be read only once.
redis::Credentials choose_credentials(const Settings& settings) try {
  redis::Credentials who{.user = settings.username,
                         .password = password_from_environment(),
                         .password_file = {},
                         .origin = from_environment("RLOCK_PASSWORD") ? "RLOCK_PASSWORD" : "REDISCLI_AUTH"};
  if (settings.password_file.empty())
    return who;
  who.password_file = settings.password_file;
  who.origin = "password file " + who.password_file;
  const auto password = who.current_password();  // fails now if it cannot be read, and not at a later renewal
  if (!std::filesystem::is_regular_file(who.password_file)) {
    who.password = password;
    who.password_file.clear();
  }
  return who;
} catch (const Error& error) {
  throw placed(settings, {"password-file"}, error);
}

/// Adds our credentials to an address, where a password in its URL takes precedence. With Sentinel, credentials in the
/// URL are for the sentinels only if we have others for the master.
void complete_credentials(redis::Address& address, const redis::Credentials& ours) {
  redis::Credentials& who = address.credentials;
  who.origin = "the URL in " + address.origin;
  if (address.sentinel)
    address.sentinel->origin = who.origin;
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
  who.origin = ours.origin;
}

/// A quorum needs independent servers. When Sentinel or a Cluster promotes a replica, grants may be forgotten without a
/// restart, so that the server's uptime does not reveal it. Whether two different names mean one server, only the
/// server can tell.
void check_members(const Settings& settings, const std::vector<redis::Address>& addresses) {
  if (addresses.size() == 1)
    return;
  for (const redis::Address& address : addresses) {
    if (address.kind != redis::Address::Kind::node)
      throw placed(settings,
                   {"redis"},
                   {ExitCode::usage,
                    fmt::format("{}: several --redis must be single servers, of which a majority decides; the URL of a "
                                "Sentinel or a Cluster must be the only one",
                                address.url)});
  }
  for (auto one = addresses.begin(); one != addresses.end(); ++one) {
    const auto is_twin = [one](const redis::Address& other) { return other.endpoints[0] == one->endpoints[0]; };
    if (const auto twin = std::find_if(one + 1, addresses.end(), is_twin); twin != addresses.end())
      throw placed(settings, {"redis"}, lock::same_server(one->url, twin->url));
  }
}

}  // namespace

std::vector<redis::Server> choose_servers(Loop& loop,
                                          const Settings& settings,
                                          const Log& log,
                                          redis::ReplyLimits limits) {
  std::vector<redis::Address> addresses = settings.redis;
  if (addresses.empty())
    addresses.push_back(redis::parse_address("redis://127.0.0.1:6379/0"));
  check_members(settings, addresses);
  const redis::Credentials ours = choose_credentials(settings);
  check_tls_files(settings.tls);
  std::vector<redis::Server> servers;
  for (redis::Address& address : addresses) {
    complete_credentials(address, ours);
    if (address.tls)
      address.tls = settings.tls;
    log.step(fmt::format("using {}", address.url));
    servers.emplace_back(loop, address, limits, log);
  }
  warn_of_exposed_secrets(settings, log);
  for (const std::string& words : settings.doubts) log.error("warning: " + words);
  return servers;
}

void warn_of_replica(std::vector<redis::Server>& servers, const Settings& settings, const Log& log) {
  redis::Server& server = servers.front();
  if (servers.size() > 1 || server.address().kind != redis::Address::Kind::node)
    return;
  const redis::Command question{"INFO", "replication"};
  const auto replies = server.call({question}, BootClock::now() + settings.timeout);
  if (replies[0].text.find("\nrole:slave") != std::string::npos)
    log.error(fmt::format("warning: {} is a replica: it may be behind its master", server.address().url));
}

}  // namespace rlock::cli
