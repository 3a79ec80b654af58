#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/word.h"
#include "cli/options.h"
#include "cli/suggest.h"

namespace rlock::cli {
namespace {

constexpr std::size_t screen = 80;
constexpr std::size_t help_column = 30;

constexpr std::array<Verb, 7> verbs{{
    {"run",
     Subcommand::run,
     "run --key K [OPTION...] -- COMMAND [ARG...]",
     "Run a command while holding a lock",
     "  rlock run -k backup -n -E 0 -- backup.sh --full\n"
     "  rlock run -k deploy -w 10m --note \"release 42\" -- deploy.sh web\n",
     "The command finds RLOCK_KEY, RLOCK_TOKEN, RLOCK_FENCE, RLOCK_TTL_MS, RLOCK_SLOT and RLOCK_HELD."},
    {"acquire",
     Subcommand::acquire,
     "acquire --key K [--hold-pid PID] [--output FORMAT] [OPTION...]",
     "Take a lock and print its token",
     "  rlock acquire migration --hold-pid $$ >/dev/null || exit\n"
     "  eval \"$(rlock acquire migration --ttl 10m --output shell)\" || exit\n",
     ""},
    {"renew",
     Subcommand::renew,
     "renew [--key K] [--token T] [--ttl D]",
     "Extend the lease of a lock that acquire or run took",
     "  rlock renew --ttl 10m || exit\n",
     "RLOCK_KEY and RLOCK_TOKEN stand in for --key and --token."},
    {"release",
     Subcommand::release,
     "release [--key K] [--token T | --force [--now] [--fence N] [-w D]]",
     "Give a lock up, or make its holder give it up",
     "  trap 'rlock release' EXIT\n"
     "  rlock release backup --force -w 1m\n",
     "RLOCK_KEY and RLOCK_TOKEN stand in for --key and --token."},
    {"status",
     Subcommand::status,
     "status [KEY|GLOB...] [--json | --prometheus] [--watch]",
     "Show who holds what, and who waits",
     "  rlock status 'deploy-*'\n"
     "  rlock status --json | jq -r '.[] | select(.state == \"held\").key'\n",
     "NO_COLOR turns colours off."},
    {"log",
     Subcommand::log,
     "log [KEY|GLOB...] [-n N] [--since D] [--json | --timeline]",
     "Show who held what, for how long, and how it ended",
     "  rlock log backup --since 7d\n"
     "  rlock log --timeline\n",
     "NO_COLOR turns colours off."},
    {"check",
     Subcommand::check,
     "check [--json]",
     "Tell whether this Redis can be trusted with locks",
     "  rlock check --redis rediss://db1:6380\n",
     "NO_COLOR turns colours off."},
}};

/// Meanings that differ from what the table of options says.
struct Meaning {
  Subcommand subcommand;
  std::string_view option;
  std::string_view help;
};

constexpr std::array<Meaning, 4> own_meanings{{
    {Subcommand::acquire, "signal", "With --hold-pid: the signal to PID when the lease is lost [TERM]"},
    {Subcommand::renew, "ttl", "How long the lease lasts from now; never shortens it [30s]"},
    {Subcommand::release, "wait", "With --force: wait no longer than D, then exit with 75"},
    {Subcommand::check, "json", "Print JSON on one line"},
}};

/// Wraps `text` at the width of the screen. The first line begins at column `at`, the others at `column`.
std::string wrap(std::string_view text, std::size_t at, std::size_t column) {
  std::string out;
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    if (at > column && at + 1 + word.size() >= screen) {
      out += "\n" + std::string(column, ' ');
      at = column;
    } else if (at > column) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
  }
  return out + "\n";
}

std::string names(const Option& option) {
  const std::string letter = option.letter != '\0' ? fmt::format("-{}, ", option.letter) : "    ";
  return fmt::format("{}--{}{}{}", letter, option.name, option.is_flag() ? "" : " ", option.value);
}

std::string describe(const Option& option, const Verb& verb) {
  std::string out = fmt::format("  {:<{}}", names(option), help_column - 2);
  if (out.size() > help_column || out.back() != ' ')
    out += "\n" + std::string(help_column, ' ');
  return out + wrap(meaning(option, &verb), help_column, help_column);
}

std::string variables(const Verb& verb) {
  std::string list;
  for (const Option& option : all_options()) {
    if (option.belongs_to(verb.subcommand) && !option.environment.empty())
      list += fmt::format("{} ", option.environment);
  }
  list += "REDIS_URL RLOCK_PASSWORD REDISCLI_AUTH";
  const std::string own = verb.environment.empty() ? "" : "  " + wrap(verb.environment, 2, 2);
  return "\nEnvironment:\n  " + wrap(list, 2, 2) + own;
}

}  // namespace

std::span<const Verb> all_verbs() { return verbs; }

const Verb* find_verb(std::string_view word) {
  const auto found = std::find_if(verbs.begin(), verbs.end(), [&](const Verb& v) { return v.name == word; });
  return found == verbs.end() ? nullptr : &*found;
}

std::string_view meaning(const Option& option, const Verb* verb) {
  const auto own = std::find_if(own_meanings.begin(), own_meanings.end(), [&](const Meaning& m) {
    return verb != nullptr && m.subcommand == verb->subcommand && m.option == option.name;
  });
  return own == own_meanings.end() ? option.help : own->help;
}

std::string suggest_verb(std::string_view word) {
  std::vector<std::string_view> known{"help"};
  for (const Verb& verb : verbs) known.push_back(verb.name);
  return did_you_mean(word, known);
}

std::string usage() {
  std::string text = "Usage:\n";
  for (const Verb& verb : verbs) text += fmt::format("  rlock {}\n", verb.synopsis);
  text += "\n";
  for (const Verb& verb : verbs) text += fmt::format("  {:<10}{}\n", verb.name, verb.purpose);
  return text +
         "\n`rlock SUBCOMMAND --help` lists its options, `rlock --version` the version.\nrlock(1) explains all.\n";
}

std::string help(const Verb& verb) {
  std::string text = fmt::format("Usage: rlock {}\n{}.\n\nOptions:\n", verb.synopsis, verb.purpose);
  for (const Option& option : all_options()) {
    if (option.belongs_to(verb.subcommand))
      text += describe(option, verb);
  }
  return fmt::format("{}\nExample:\n{}{}\n{}",
                     text,
                     verb.example,
                     variables(verb),
                     "D is a duration: 30, 1.5s, 250ms, 10m, 1h30m, 7d. rlock(1) explains the rest.\n");
}

}  // namespace rlock::cli
