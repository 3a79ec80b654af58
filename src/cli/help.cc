#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/options.h"

namespace rlock::cli {
namespace {

constexpr std::array<Verb, 6> verbs{{
    {"run", Subcommand::run, "run --key K [OPTION...] -- COMMAND [ARG...]", "Run a command while holding a lock"},
    {"acquire", Subcommand::acquire, "acquire --key K [--hold-pid PID] [OPTION...]", "Take a lock and print its token"},
    {"renew", Subcommand::renew, "renew [--key K] [--token T] [--ttl D]", "Extend a lease"},
    {"release", Subcommand::release, "release [--key K] [--token T | --force [--fence N]]", "Give a lock up"},
    {"status", Subcommand::status, "status [KEY...] [--json] [--watch]", "Who holds what, and who waits"},
    {"check", Subcommand::check, "check [--json]", "Whether this Redis can be trusted with locks"},
}};

}  // namespace

const Verb* find_verb(std::string_view word) {
  const auto found = std::find_if(verbs.begin(), verbs.end(), [&](const Verb& v) { return v.name == word; });
  return found == verbs.end() ? nullptr : &*found;
}

std::string usage() {
  std::string text = "Usage:\n";
  for (const Verb& verb : verbs) text += fmt::format("  rlock {}\n", verb.synopsis);
  text += "\n";
  for (const Verb& verb : verbs) text += fmt::format("  {:<10}{}\n", verb.name, verb.purpose);
  return text + "\n`rlock SUBCOMMAND --help` lists its options; rlock(1) explains them.\n";
}

std::string help(const Verb& verb) {
  std::string text = fmt::format("Usage: rlock {}\n{}.\n\nOptions:\n", verb.synopsis, verb.purpose);
  for (const Option& option : all_options()) {
    if (!option.belongs_to(verb.subcommand))
      continue;
    const auto comma = option.names.find(',');
    const bool has_short = comma != std::string_view::npos;
    std::string names = has_short ? fmt::format("{}, ", option.names.substr(0, comma)) : "    ";
    names += option.long_name();
    if (!option.is_flag())
      names += fmt::format(" {}", option.value);
    text += fmt::format("  {:<30} {}\n", names, option.help);
  }
  text += fmt::format("  {:<30} {}\n", "-h, --help", "Show this");
  return text + "\nD is a duration: 30, 1.5s, 250ms, 10m, 2h, 7d. rlock(1) explains the rest.\n";
}

}  // namespace rlock::cli
