#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/word.h"

namespace rlock::cli {
namespace {

constexpr std::size_t help_width = 80;
constexpr std::size_t explanation_column = 30;

/// Meanings that differ from what the table of options says.
struct Meaning {
  Subcommand subcommand;
  std::string_view option;
  std::string_view help;
};

constexpr auto own_meanings = std::to_array<Meaning>({
    {Subcommand::run, "quiet", "Print only errors, not why the lock was not acquired"},
    {Subcommand::acquire, "ttl", "Lease, which nobody renews unless --hold-pid is given [30s]"},
    {Subcommand::acquire, "quiet", "Print only the token and errors, not why the lock was not acquired"},
    {Subcommand::acquire, "signal", "With --hold-pid: signal to PID if the lease is lost [TERM]"},
    {Subcommand::renew,
     "ttl",
     "How long the lease lasts from now on; it is never shortened [RLOCK_TTL_MS of this lock, or 30s]"},
    {Subcommand::release,
     "wait",
     "With --force: wait for D at most [for ever], then exit with 75; the holder must still give it up"},
    {Subcommand::release, "note", "With --hold: the reason, which status and log show"},
    {Subcommand::hold, "holder", "Name of whoever puts the lock on hold [user@host]"},
    {Subcommand::hold, "note", "The reason, which status, log and those who wait show"},
    {Subcommand::check, "json", "Print JSON on one line"},
    {Subcommand::check, "quiet", "Print only what is not ok"},
    {Subcommand::status, "quiet", "Print no notices besides the output"},
    {Subcommand::log, "quiet", "Print no notices besides the output, such as why it is empty"},
});

using Heading = std::pair<Section, std::string_view>;

/// Those of `status`, `log` and `check` begin with what one comes for.
std::array<Heading, 5> headings_of(const SubcommandEntry& subcommand) {
  std::array<Heading, 5> headings{{{Section::lock, "Lock"},
                                   {Section::command, "Command"},
                                   {Section::redis, "Redis"},
                                   {Section::output, "Output"},
                                   {Section::advanced, "Advanced"}}};
  constexpr std::array only_look{Subcommand::status, Subcommand::log, Subcommand::check};
  if (std::find(only_look.begin(), only_look.end(), subcommand.id) != only_look.end())
    std::swap(headings[2], headings[3]);
  return headings;
}

/// Wraps `text` at the width of the help. The first line begins at column `at`, the others at `column`.
std::string wrap(std::string_view text, std::size_t at, std::size_t column) {
  std::string out;
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    if (at > column && at + 1 + word.size() >= help_width) {
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

std::string describe(const Option& option, const SubcommandEntry& subcommand) {
  std::string out = fmt::format("  {:<{}}", names(option), explanation_column - 2);
  if (out.size() > explanation_column || out.back() != ' ')
    out += "\n" + std::string(explanation_column, ' ');
  return out + wrap(meaning(option, &subcommand), explanation_column, explanation_column);
}

std::string glossary(const SubcommandEntry& subcommand) {
  if (subcommand.terms.empty())
    return "";
  std::size_t column = 0;
  for (const Term& term : subcommand.terms) column = std::max(column, term.word.size() + 4);
  std::string text = fmt::format("\n{}:\n", subcommand.heading);
  for (const Term& term : subcommand.terms)
    text += fmt::format("  {:<{}}{}", term.word, column - 2, wrap(term.meaning, column, column));
  return text;
}

std::string statuses(const SubcommandEntry& subcommand) {
  return "\nExit status:\n  " + wrap(fmt::format("{}{}69: Redis could not be reached. 77: it refused the user, or "
                                                 "permits too little. rlock(1) lists all.",
                                                 subcommand.statuses,
                                                 subcommand.statuses.empty() ? "" : " "),
                                     2,
                                     2);
}

std::string variables(const SubcommandEntry& subcommand) {
  std::string list = "Each stands for the option of the same name:";
  for (const Option& option : all_options()) {
    if (option.belongs_to(subcommand.id) && !option.environment.empty())
      list += fmt::format(" {}", option.environment);
  }
  list += ". REDIS_URL stands for --redis too, RLOCK_PASSWORD and REDISCLI_AUTH for the password itself.";
  const std::string own = subcommand.environment.empty() ? "" : "  " + wrap(subcommand.environment, 2, 2);
  return "\nEnvironment:\n  " + wrap(list, 2, 2) + own;
}

}  // namespace

std::string_view meaning(const Option& option, const SubcommandEntry* subcommand) {
  const auto own = std::find_if(own_meanings.begin(), own_meanings.end(), [&](const Meaning& m) {
    return subcommand != nullptr && m.subcommand == subcommand->id && m.option == option.name;
  });
  return own == own_meanings.end() ? option.help : own->help;
}

std::string usage() {
  std::string text = "Usage:\n";
  for (const SubcommandEntry& entry : all_subcommands()) text += fmt::format("  rlock {}\n", entry.synopsis);
  text += "\n";
  for (const SubcommandEntry& entry : all_subcommands()) text += fmt::format("  {:<10}{}\n", entry.name, entry.purpose);
  return text +
         "\nKEY is a name of your choice: commands under the same KEY exclude each other,\n"
         "as in `rlock run backup -- backup.sh`.\n"
         "RLOCK_REDIS, or `redis = URL` in /etc/rlock.conf, says where Redis is.\n"
         "`rlock SUBCOMMAND --help` or `rlock help SUBCOMMAND` lists the options of a\n"
         "subcommand, `rlock --version` prints the version, rlock(1) is the manual.\n";
}

std::string short_usage() {
  std::string names;
  for (const SubcommandEntry& entry : all_subcommands())
    names += fmt::format("{}{}", names.empty() ? "" : "|", entry.name);
  return fmt::format("Usage: rlock {} ...; `rlock --help` explains them\n", names);
}

std::string help(const SubcommandEntry& subcommand) {
  std::string text = fmt::format("Usage: rlock {}\n{}.\n", subcommand.synopsis, subcommand.purpose);
  for (const auto& [section, heading] : headings_of(subcommand)) {
    std::string options;
    for (const Option& option : all_options()) {
      if (option.section == section && option.belongs_to(subcommand.id))
        options += describe(option, subcommand);
    }
    if (!options.empty())
      text += fmt::format("\n{}:\n{}", heading, options);
  }
  return fmt::format("{}\nExample:\n{}{}{}{}\n{}{}",
                     text,
                     subcommand.example,
                     glossary(subcommand),
                     statuses(subcommand),
                     variables(subcommand),
                     subcommand.words.empty() ? "" : wrap(subcommand.words, 0, 0),
                     "D is a duration: 30 (seconds), 500ms, 5m, 1h30m, 7d. rlock(1) has all the rest.\n");
}

}  // namespace rlock::cli
