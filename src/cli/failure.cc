#include "cli/failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/config.h"
#include "lock/retry.h"
#include "lock/wording.h"
#include "observe/survey.h"

namespace rlock::cli {
namespace {

/// Where the server was named that the failure is about.
std::string whose_address(const Settings& settings, std::string_view failure) {
  if (settings.redis.empty()) {
    const char* why = std::getenv(redis_variable) == nullptr ? "" : ", as RLOCK_REDIS is empty";
    return fmt::format(" (the default address{}; set RLOCK_REDIS, or redis = URL in /etc/rlock.conf)", why);
  }
  const auto is_named = [failure](const redis::Address& address) {
    return failure.find(address.url + ": ") != std::string_view::npos;
  };
  const auto named = std::find_if(settings.redis.begin(), settings.redis.end(), is_named);
  return fmt::format(" (from {})", (named == settings.redis.end() ? settings.redis.front() : *named).origin);
}

/// A hint for a command under `run`, which does not get every password that the run itself has.
std::string missing_password(const Settings& settings) {
  const bool has_one = !settings.password_file.empty() || password_from_environment();
  if (has_one || !from_environment("RLOCK_HELD"))
    return "";
  return " (`rlock run` hands --password-file on to its command, but neither RLOCK_PASSWORD nor a URL's password)";
}

bool is_unheard_of(std::vector<redis::Server>& servers, const lock::LockName& name, const Settings& settings) try {
  const auto found = observe::survey(servers, {.prefix = settings.prefix, .names = {name}}, settings.timeout);
  return !found.empty() && observe::is_unheard_of(found[0]);
} catch (const Error&) {
  return false;
}

std::string describe_instead(lock::Lock& lock,
                             const lock::Token& token,
                             std::vector<redis::Server>& servers,
                             const Settings& settings,
                             Deadline deadline) {
  const lock::Forced found = lock.look(deadline);
  if (std::holds_alternative<lock::ForeignKey>(found))
    return "another program's key is there";
  const lock::Fate fate = lock.fate_of(token, lock::Level::random(), {}, deadline);
  const bool given_back = std::holds_alternative<lock::GivenBack>(fate);
  const std::string_view end = given_back
                                   ? "it was released already"
                                   : "the lease has ended, its holder was evicted, or the token is another lock's";
  const auto& targets = std::get<std::vector<lock::Target>>(found);
  if (!targets.empty()) {
    const bool cooling = targets[0].state == lock::Target::State::cooling;
    return fmt::format("{}; now it is {} {} with fence {}",
                       end,
                       cooling ? "cooling after" : "held by",
                       lock::describe(targets[0].owner),
                       targets[0].fence.value);
  }
  if (given_back)
    return std::string{end};
  return is_unheard_of(servers, lock.name(), settings) ? fmt::format("it is free, and {}", unheard_of)
                                                       : fmt::format("it is free; {}", end);
}

}  // namespace

Error with_context(const Error& error, const Settings& settings, std::string_view key, std::string_view undone) {
  const bool refused = error.code() == ExitCode::no_permission;
  if (!refused && error.code() != ExitCode::unavailable)
    return error;
  const std::string about = key.empty() ? "" : fmt::format("{}: ", key);
  const std::string_view what = error.what();
  const bool named = what.starts_with(about);
  return {error.code(),
          fmt::format("{}{}{}{}{}",
                      named ? "" : about,
                      what,
                      refused ? missing_password(settings) : whose_address(settings, what),
                      undone.empty() ? "" : "; ",
                      undone)};
}

std::string only_key(const Settings& settings) {
  if (settings.keys.size() > 1)
    return "";
  return settings.keys.empty() ? from_environment("RLOCK_KEY").value_or("") : settings.keys.front();
}

bool may_be_done(const lock::Lock& lock, const Error& error) {
  return lock.was_asked() && error.code() != ExitCode::no_permission;
}

bool may_be_mended(const Error& error) {
  return error.code() == ExitCode::unavailable || error.code() == ExitCode::no_permission;
}

std::string lock_words(const Settings& settings, std::string_view key) {
  return lock::key_word(key) + settings.server_words;
}

std::string command_to_break(const Settings& settings, std::string_view key, lock::Fence fence) {
  return fmt::format("rlock release {} --force --fence {}", lock_words(settings, key), fence.value);
}

ExitCode say_not_held(lock::Lock& lock,
                      const lock::Token& token,
                      std::vector<redis::Server>& servers,
                      const Settings& settings,
                      Deadline give_up,
                      const Log& log) {
  const std::string other = from_environment("RLOCK_KEY").value_or(lock.name().text());
  const bool is_inherited =
      !settings.token && !settings.token_from_stdin && from_environment("RLOCK_TOKEN") == token.text();
  if (is_inherited && other != lock.name().text()) {
    log.error(
        fmt::format("{} is not held by RLOCK_TOKEN, which belongs to {}; write --token", lock.name().text(), other));
    return ExitCode::negative;
  }
  std::string message = fmt::format("{} is not held by this token", lock.name().text());
  try {
    message += ": " + lock::persist(lock, settings.timeout, give_up, [&](Deadline deadline) {
                 return describe_instead(lock, token, servers, settings, deadline);
               });
  } catch (const Error&) {
    // Only the explanation failed.
  }
  log.error(message);
  return ExitCode::negative;
}

}  // namespace rlock::cli
