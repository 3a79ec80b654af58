#include "cli/failure.h"

#include <fmt/format.h>

#include <string>

#include "cli/config.h"

namespace rlock::cli {
namespace {

std::string whose_address(const Settings& settings) {
  if (settings.redis.empty())
    return " (the default address; set RLOCK_REDIS or --redis)";
  return fmt::format(" (the address of {})", settings.redis_origin);
}

/// A hint for a command under `run`, which does not get every password that the run itself has.
std::string missing_password(const Settings& settings) {
  const bool has_one = !settings.password_file.empty() || password_from_environment();
  if (has_one || !from_environment("RLOCK_HELD"))
    return "";
  return " (`rlock run` hands --password-file on to its command, but neither RLOCK_PASSWORD nor a URL's password)";
}

}  // namespace

Error explain(const Error& error, const Settings& settings, std::string_view undone) {
  const bool refused = error.code() == ExitCode::no_permission;
  if (!refused && error.code() != ExitCode::unavailable)
    return error;
  const std::string key = settings.keys.empty() ? from_environment("RLOCK_KEY").value_or("") : settings.keys.front();
  const std::string about = settings.keys.size() > 1 || key.empty() ? "" : key + ": ";
  const std::string_view what = error.what();
  const bool named = what.starts_with(about);
  return {error.code(),
          fmt::format("{}{}{}; {}",
                      named ? "" : about,
                      what,
                      refused ? missing_password(settings) : whose_address(settings),
                      undone)};
}

}  // namespace rlock::cli
