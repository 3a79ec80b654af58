#include "cli/claim.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/error.h"
#include "cli/config.h"
#include "cli/enclosing.h"
#include "cli/value.h"
#include "run/ancestry.h"

namespace rlock::cli {
namespace {

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

lock::Capacity choose_capacity(const Settings& settings) {
  if (settings.shared)
    return lock::shared;
  if (settings.slots.value_or(1) > 1 && settings.redis.size() > 1)
    throw placed(settings,
                 {"slots", "redis"},
                 {ExitCode::usage, "--slots is for one --redis; with several servers, more than N could hold at once"});
  return lock::Capacity{settings.slots.value_or(1)};
}

std::optional<lock::Replicas> choose_replicas(const Settings& settings) {
  if (settings.replicas && settings.redis.size() > 1)
    throw placed(
        settings,
        {"replicas", "redis"},
        {ExitCode::usage, "--replicas is for one --redis; with several servers a majority has the lock anyway"});
  return settings.replicas;
}

}  // namespace

lock::LockName choose_lock(const Settings& settings) {
  if (settings.keys.empty())
    throw Error{
        ExitCode::usage,
        fmt::format("no key; write it {}", settings.command.empty() ? "after the subcommand" : "before the `--`")};
  return {settings.prefix, settings.keys.front(), settings.key_origin};
}

lock::LockName choose_held_lock(const Settings& settings) {
  if (!settings.keys.empty())
    return choose_lock(settings);
  const auto key = from_environment("RLOCK_KEY");
  if (!key)
    throw Error{ExitCode::usage, "no key, and no RLOCK_KEY; write it after the subcommand"};
  return {settings.prefix, *key, "RLOCK_KEY"};
}

lock::Token choose_token(const Settings& settings,
                         const lock::LockName& name,
                         const std::vector<redis::Server>& servers,
                         std::string_view hint) {
  if (settings.token)
    return *settings.token;
  const auto text = settings.token_from_stdin ? read_line() : from_environment("RLOCK_TOKEN");
  if (const auto key = from_environment("RLOCK_KEY"); !settings.token_from_stdin && key && key != name.text()) {
    const std::string held = held_around(settings, join_urls(servers));
    const auto of_key = lock::inherited_token(held, *key);
    const auto ours = lock::inherited_token(held, name.text());
    if (ours && of_key && text == of_key->text())
      return *ours;
  }
  if (!text)
    throw Error{ExitCode::usage, fmt::format("no --token, and no RLOCK_TOKEN{}", hint)};
  return Value{.text = *text, .origin = settings.token_from_stdin ? "--token -" : "RLOCK_TOKEN"}.token();
}

lock::Claim choose_claim(const Settings& settings, const lock::Owner& owner, bool has_keeper) {
  if (settings.attempts && !settings.once && !settings.once_per && !settings.period)
    throw placed(settings,
                 {"attempts"},
                 {ExitCode::usage, "--attempts is for an ID or a period: write --once ID or --once-per day too"});
  const auto calendar_slot = settings.period ? std::optional{slot_of(*settings.period, wall_now())} : std::nullopt;
  return {.token = lock::Token::random(),
          .level = lock::Level::random(),
          .capacity = choose_capacity(settings),
          .ttl = settings.lease(),
          .min_hold = settings.min_hold,
          .replicas = choose_replicas(settings),
          .owner = owner,
          .has_keeper = has_keeper,
          .latest = settings.latest,
          .replace = settings.replace,
          .first = settings.first,
          .max_waiting = settings.max_waiting,
          .once = settings.once,
          .once_per = settings.once_per,
          .backoff = settings.backoff,
          .attempts = settings.attempts,
          .calendar_slot = calendar_slot};
}

lock::Patience choose_patience(const Settings& settings) {
  lock::Patience patience{.timeout = settings.timeout, .wait = settings.wait, .hint = run::describe_deadlock};
  if (settings.nonblock)
    patience.wait = Milliseconds{0};
  return patience;
}

void check_quorum_times(const Settings& settings) {
  if (settings.redis.size() <= 1)
    return;
  const auto check = [&settings](std::string_view option, Milliseconds duration) {
    if (duration <= settings.max_lease)
      return;
    throw placed(settings,
                 {option, "max-lease", "redis"},
                 {ExitCode::usage,
                  fmt::format("--{} {} is longer than --max-lease {}, which several --redis need",
                              option,
                              format_limit(duration),
                              format_limit(settings.max_lease))});
  };
  check("ttl", settings.lease());
  check("min-hold", settings.min_hold);
}

bool is_pattern(const Settings& settings, std::string_view word) {
  return settings.key_origin == positional_key && observe::is_pattern(word);
}

observe::Scope choose_scope(const Settings& settings) {
  observe::Scope scope{.prefix = settings.prefix};
  for (const std::string& word : settings.keys) {
    if (is_pattern(settings, word)) {
      scope.patterns.push_back(word);
    } else {
      scope.names.emplace_back(settings.prefix, word, settings.key_origin);
    }
  }
  return scope;
}

}  // namespace rlock::cli
