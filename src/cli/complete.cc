#include "cli/complete.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/loop.h"
#include "cli/args.h"
#include "cli/help.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
#include "lock/wording.h"
#include "observe/survey.h"

namespace rlock::cli {
namespace {

/// Completion feels slow after 150 ms, of which the start of the process and the shell need the rest.
constexpr Milliseconds patience{80};

constexpr std::array<std::string_view, 7> url_beginnings{"redis://",
                                                         "rediss://",
                                                         "unix://",
                                                         "redis-sentinel://",
                                                         "rediss-sentinel://",
                                                         "redis-cluster://",
                                                         "rediss-cluster://"};

/// "held by deploy@web3", "free, ok 3h ago".
std::string describe(const observe::LockFacts& lock) {
  if (lock.hold)
    return lock::describe(lock.hold->hold, lock.now);
  const std::string_view state = observe::state_name(lock.state);
  if (!lock.holders.empty())
    return fmt::format(
        "{} {} {}", state, lock.state == observe::State::held ? "by" : "after", lock.holders[0].owner.holder);
  if (lock.foreign)
    return "held by another program";
  std::string text{state};
  if (lock.last)
    text += ", " + observe::describe_end(*lock.last, lock.now);
  return text;
}

std::string line_of(std::string_view word, std::string_view meaning) {
  return fmt::format("{}\t{}\n", word, printable(meaning));
}

/// Reads only the options that choose the connection, since the rest of the line may be unfinished.
Settings connection_settings(Words words) {
  if (words.subcommand == nullptr)
    words.subcommand = find_subcommand("status");  // the connection's options are the same for all
  std::erase_if(words.options, [](const Given& given) { return given.option->environment.empty(); });
  words.plain.clear();
  Settings settings = read_settings(words);
  settings.timeout = std::min(settings.timeout, patience);
  return settings;
}

/// The locks on the Redis that these words choose: the one named `key`, or all, and with `remembered` free ones too.
std::vector<observe::LockFacts> look(const Words& words, const std::optional<std::string>& key, bool remembered) {
  const Settings settings = connection_settings(words);
  Loop loop;
  auto servers = choose_servers(loop, settings, Log{Verbosity::quiet}, observe::listing_limits);
  observe::Scope scope{.prefix = settings.prefix, .remembered = remembered};
  if (key)
    scope.names.emplace_back(settings.prefix, *key);
  const BootTimer timer;  // for all questions together: a slow server could use up one time limit for each
  timer.set(BootClock::now() + patience);
  loop.watch(timer.fd(), [] { throw Error{ExitCode::unavailable, "too late"}; });
  return observe::survey(servers, scope, settings.timeout);
}

/// Those that the subcommand can do something with: `release` and `renew` with a lock that is not free, `hold --end`
/// with one that is on hold. Leaves out names that a shell would not show unchanged, and those that would be read as
/// options, lest whoever has named a lock `--redis=URL` be sent a password.
std::string lock_names(const Words& words) {
  using enum Subcommand;
  const bool ends_hold = words.find("end") != nullptr;
  const bool of_taken =
      words.subcommand != nullptr && (words.subcommand->id == release || words.subcommand->id == renew);
  std::string out;
  for (const observe::LockFacts& lock : look(words, std::nullopt, !ends_hold && !of_taken)) {
    const bool serves = (lock.hold || !ends_hold) && (lock.state != observe::State::free || !of_taken);
    if (serves && printable(lock.name) == lock.name && !lock.name.starts_with('-'))
      out += line_of(lock.name, describe(lock));
  }
  return out;
}

/// The fences of those who hold the lock that is named, which nobody likes to copy by hand.
std::string fences(const Words& words) {
  const Given* const option = words.find("key");
  if (option == nullptr && words.plain.empty())
    return {};
  std::string out;
  const std::string& key = option != nullptr ? option->values.back().text : words.plain.front();
  for (const observe::LockFacts& lock : look(words, key, false)) {
    for (const observe::HolderFacts& holder : lock.holders)
      out += line_of(std::to_string(holder.fence.value), holder.owner.holder);
  }
  return out;
}

std::string values(const Option& option, const Words& words) {
  std::string out;
  const auto add_all = [&](const auto& candidates) {
    for (const std::string_view word : candidates) out += line_of(word, "");
  };
  add_all(option.choices());
  if (option.value == "K")
    out += lock_names(words);
  if (option.name == "fence")
    out += fences(words);
  if (option.value == "SIG")
    add_all(common_signals);
  if (option.value == "PERIOD")
    add_all(period_names);
  if (option.value == "URL")
    add_all(url_beginnings);
  if (option.value == "PID")
    out += ":processes\n";
  if (option.is_file())
    out += ":files\n";
  return out;
}

/// Before the subcommand only the options that every one of them takes are offered, and --version. None is offered that
/// would be given twice, or contradicts one that is given.
bool is_offered(const Option& option, const Layer& given, const SubcommandEntry* subcommand) {
  if (!is_consistent_with(option, given))
    return false;
  if (subcommand != nullptr)
    return option.belongs_to(subcommand->id);
  const auto all = all_subcommands();
  const auto takes_it = [&option](const SubcommandEntry& entry) { return option.belongs_to(entry.id); };
  return option.name == "version" || std::all_of(all.begin(), all.end(), takes_it);
}

std::string option_names(const Words& words) {
  std::string out;
  for (const Option& option : all_options()) {
    if (is_offered(option, words.options, words.subcommand))
      out +=
          line_of(fmt::format("--{}{}", option.name, option.is_flag() ? "" : "="), meaning(option, words.subcommand));
  }
  return out;
}

std::string subcommand_names() {
  std::string out;
  for (const SubcommandEntry& entry : all_subcommands()) out += line_of(entry.name, entry.purpose);
  return out + line_of("help", "Explain a subcommand");
}

std::string candidates(const Words& before, std::string_view current) {
  if (before.incomplete != nullptr)
    return values(*before.incomplete, before);
  if (const auto equals = current.find('='); current.starts_with("--") && equals != std::string_view::npos) {
    const Option* option = find_option(current.substr(2, equals - 2));
    return option == nullptr ? "" : values(*option, before);
  }
  if (current.starts_with('-'))
    return option_names(before);
  if (before.subcommand == nullptr)
    return before.plain.empty() || (before.asks_for_help() && before.plain.size() == 1) ? subcommand_names() : "";
  const Keys keys = before.subcommand->keys;
  const bool has_all = before.find("key") != nullptr || (keys == Keys::one && !before.plain.empty());
  if (keys != Keys::none && !has_all)
    return lock_names(before);
  return before.subcommand->id == Subcommand::run ? line_of("--", "The command follows") : "";
}

}  // namespace

std::string complete(std::span<const char* const> words) {
  if (words.empty())
    return {};
  try {
    return candidates(read_words(words.first(words.size() - 1)), words.back());
  } catch (const Error&) {
    return {};
  }
}

}  // namespace rlock::cli
