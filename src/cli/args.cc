#include "cli/args.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "base/escape.h"
#include "cli/help.h"
#include "cli/value.h"
#include "lock/token.h"
#include "redis/address.h"
#include "redis/link.h"

namespace rlock::cli {
namespace {

using Line = std::vector<std::string>;

bool is_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }
bool is_long(std::string_view word) { return word.starts_with("--"); }

const Option* find_long(std::string_view word) { return find_option(word.substr(2, word.find('=') - 2)); }

/// The option whose value is the next word; nullptr where the word is no option, or one that needs no further word.
const Option* option_that_awaits_value(std::string_view word, const SubcommandEntry* subcommand) {
  if (!is_option(word))
    return nullptr;
  if (is_long(word)) {
    const Option* option = find_long(word);
    const bool waits = option != nullptr && !option->is_flag() && word.find('=') == std::string_view::npos;
    return waits ? option : nullptr;
  }
  for (std::size_t i = 1; i < word.size(); ++i) {  // of a bundle such as -qnE only the last can await a value
    const Option* option = find_option(word[i], subcommand);
    if (option == nullptr || !option->is_flag())
      return option != nullptr && i + 1 == word.size() ? option : nullptr;
  }
  return nullptr;
}

/// Finds the first word that is neither an option nor an option's value: the name of a subcommand, if all is well.
/// Since that name is not known yet, a number after -n is taken for the value of --lines.
Line::iterator find_subcommand_word(Line& line) {
  for (auto word = line.begin(); word != line.end(); ++word) {
    if (!is_option(*word))
      return word;
    const auto next = std::next(word);
    if (next == line.end())
      break;
    const bool counts_lines = !is_long(*word) && word->ends_with('n') && is_digits(*next);
    if (counts_lines || option_that_awaits_value(*word, nullptr) != nullptr)
      ++word;
  }
  return line.end();
}

/// CLI11 would take the next word as the value of `--option=`, and `--flag=` as the flag alone.
Line separate_values(const Line& line, const SubcommandEntry* subcommand) {
  Line out;
  bool is_value = false;
  for (const std::string& word : line) {
    const auto equals = is_value || !is_long(word) ? std::string::npos : word.find('=');
    const Option* option = equals == std::string::npos ? nullptr : find_long(word);
    if (option != nullptr && option->is_flag() && equals + 1 == word.size())
      Value{.origin = word.substr(0, equals)}.flag();  // throws
    out.push_back(word);
    if (option != nullptr && !option->is_flag()) {
      out.back().resize(equals);
      out.push_back(word.substr(equals + 1));
    }
    is_value = !is_value && option_that_awaits_value(word, subcommand) != nullptr;
  }
  return out;
}

/// Two options share a letter; CLI11 must know it only for the one that it means here. A flag alone means "yes".
std::string names_for_cli11(const Option& option, const SubcommandEntry* subcommand) {
  const std::string_view bare = option.is_flag() ? "{yes}" : "";
  std::string names = fmt::format("--{}{}", option.name, bare);
  if (find_option(option.letter, subcommand) == &option)
    names += fmt::format(",-{}{}", option.letter, bare);
  return names;
}

bool is_bundle_of_flags(std::string_view word) {
  return std::all_of(word.begin() + 1, word.end(), [](char letter) {
    const Option* option = find_option(letter, nullptr);
    return option != nullptr && option->is_flag();
  });
}

/// -h counts only among other flags, or consul's -http-addr would print the help and end with 0.
bool is_mentioned(const Option& option, const Line& line) {
  return std::any_of(line.begin(), line.end(), [&option](const std::string& word) {
    if (is_long(word))
      return find_long(word) == &option;
    const bool has_letter = is_option(word) && option.letter != '\0' && word.find(option.letter) != std::string::npos;
    return has_letter && (option.name != "help" || is_bundle_of_flags(word));
  });
}

void add_given(const Option& option, const std::vector<std::string>& results, Layer& options) {
  Given given{&option, {}};
  for (const std::string& text : results)
    given.values.push_back({.text = text, .origin = fmt::format("--{}", option.name)});
  if (!given.values.empty())
    options.push_back(std::move(given));
}

/// Has CLI11 sort the words. It is told only of the options that the line mentions, since declaring all of them would
/// cost every start 150 us.
void sort_words(Line line, Words& words) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::pair<const Option*, CLI::Option*>> known;
  for (const Option& option : all_options()) {
    if (!is_mentioned(option, line))
      continue;
    const std::string names = names_for_cli11(option, words.subcommand);
    CLI::Option* read = option.is_flag() ? app.add_flag(names) : app.add_option(names);
    read->take_all();  // so that we, not CLI11, report an option that is given twice
    known.emplace_back(&option, read);
  }
  const std::string last = line.empty() ? "" : line.back();
  std::reverse(line.begin(), line.end());  // CLI11 reads from the end
  try {
    app.parse(std::move(line));
  } catch (const CLI::ArgumentMismatch&) {
    words.incomplete = option_that_awaits_value(last, words.subcommand);  // only there can a value be missing
  }
  for (std::string& extra : app.remaining()) {
    if (words.unknown.empty() && is_option(extra))
      words.before_unknown = words.plain.size();
    (is_option(extra) ? words.unknown : words.plain).push_back(std::move(extra));
  }
  for (const auto& [option, read] : known) add_given(*option, read->results(), words.options);
}

[[noreturn]] void refuse(const std::string& why) { throw Error{ExitCode::usage, why}; }

/// An option's name without its value, which may be a secret.
std::string name_of(const std::string& word) {
  if (is_long(word))
    return word.substr(2, word.find('=') - 2);
  return word[1] == 'h' ? word.substr(1, word.find('=') - 1) : word.substr(1, 1);  // -h by itself is known
}

/// What users of other tools write, and what they mean here.
constexpr auto option_aliases = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"lock", "key"},
    {"name", "key"},
    {"lease", "ttl"},
    {"expire", "ttl"},
    {"exit-code", "conflict-exit-code"},
    {"nowait", "nonblock"},
    {"no-wait", "nonblock"},
    {"nb", "nonblock"},
    {"max-time", "max-runtime"},
    {"runtime", "max-runtime"},
    {"run-timeout", "max-runtime"},
    {"kill-timeout", "kill-after"},
    {"max-wait", "wait"},
    {"wait-time", "wait"},
    {"wait-timeout", "wait"},
    {"lock-timeout", "wait"},
    {"try", "wait"},  // consul's
    {"retry", "attempts"},
    {"retries", "attempts"},
    {"daily", "once-per day"},
    {"hourly", "once-per hour"},
    {"weekly", "once-per week"},
    {"per", "once-per"},
    {"every", "once-per"},
    {"pid", "hold-pid"},
    {"format", "json"},
    {"format", "output"},  // of acquire
    {"silent", "quiet"},
    {"debug", "verbose"},
    {"message", "note"},
    {"reason", "note"},
    {"host", "redis"},
    {"server", "redis"},
    {"url", "redis"},
    {"endpoints", "redis"},
    {"last", "lines"},
    {"tail", "lines"},
    {"limit", "lines"},
    {"failures", "failed"},
    {"errors", "failed"},
    {"stop", "end"},  // of a hold
    {"clear", "end"},
    {"lift", "end"},
    {"tls-cert", "cert"},  // redis-cli's --cert and others'
    {"tls-ca", "cacert"},
    {"tls-cacert", "cacert"},
    {"tls-ca-cert", "cacert"},
    {"ca", "cacert"},
    {"key-file", "tls-key"},
    {"pass-file", "password-file"},
});

/// Any option may be meant where there is no subcommand.
bool may_have(const SubcommandEntry* subcommand, const Option& option) {
  return subcommand == nullptr || option.belongs_to(subcommand->id);
}

/// "there is no --retry; did you mean --attempts?", if the subcommand has that; else an empty string.
std::string translate(std::string_view name, std::string_view dashes, const SubcommandEntry* subcommand) {
  for (const auto& [alias, meant] : option_aliases) {
    const Option* option = alias == name ? find_option(meant.substr(0, meant.find(' '))) : nullptr;
    if (option != nullptr && may_have(subcommand, *option))
      return fmt::format("there is no {}{}; did you mean --{}?", dashes, name, meant);
  }
  return {};
}

/// flock's name for --wait is --timeout.
constexpr std::string_view instead_of_timeout =
    "write --wait D (for the lock) or --redis-timeout D (for an answer of Redis)";

bool is_for(const SubcommandEntry* subcommand, Subcommand id) { return subcommand != nullptr && subcommand->id == id; }

/// What to write instead of -x; empty where we do not know.
std::string remedy_for_letter(const std::string& word, const SubcommandEntry* subcommand) {
  const std::string name = name_of(word);
  if (name == "p" || name == "u")  // redis-cli's, and -u is flock's, too
    return fmt::format("unknown option '-{}'; {}to name a server write --redis redis://HOST:PORT",
                       name,
                       name == "u" ? "to give a lock up write `rlock release KEY`, " : "");
  if (name == "a" && is_for(subcommand, Subcommand::status))
    return "there is no -a; did you mean --all?";
  if (name == "a")  // also redis-cli's
    return "there is no -a, since ps would show the password; use --password-file or RLOCK_PASSWORD";
  if (is_digits(name) && is_for(subcommand, Subcommand::log))  // tail's
    return fmt::format("unknown option '{0}'; write -n {1}", word, word.substr(1));
  if (name == "=")  // of consul's -n=2, which was taken apart
    return "a flag such as -n or -q takes no value; for N holders at a time write --slots N";
  if (name == "e")  // flock's
    return "there is no -e; did you mean -x?";
  if (name == "c" && is_for(subcommand, Subcommand::run))
    return "run has no -c; write `-- sh -c '...'` after the options";
  return {};
}

/// Why consul has an option that we need not have; empty where it has none.
std::string reason_to_miss(std::string_view name, std::string_view dashes) {
  if (name == "child-exit-code")
    return fmt::format("there is no {}{}: the exit status is always the command's", dashes, name);
  if (name == "monitor-retry")
    return fmt::format(
        "there is no {}{}: a renewal that fails is tried again until the lease is nearly over", dashes, name);
  return {};
}

/// What to write instead of an unknown option; empty where we do not know.
std::string remedy_for(const std::string& word, const SubcommandEntry* subcommand) {
  if (!is_long(word))
    return remedy_for_letter(word, subcommand);
  const std::string name = name_of(word);
  const std::string_view of_run = is_for(subcommand, Subcommand::run) ? ", or --max-runtime D (for the command)" : "";
  if (name == "timeout" || name == "time-out")
    return fmt::format("there is no --{}; {}{}", name, instead_of_timeout, of_run);
  if (name == "password" || name == "pass" || name == "auth")
    return fmt::format("there is no --{}, since ps would show it; use --password-file or RLOCK_PASSWORD", name);
  if (name == "tls" || name == "ssl")  // redis-cli's
    return fmt::format("there is no --{}; write --redis rediss://HOST:PORT", name);
  if (name == "port" || name == "db" || name == "database")  // others name a server in pieces
    return fmt::format("there is no --{}; write --redis redis://HOST:PORT/DB", name);
  if (name == "list" && is_for(subcommand, Subcommand::hold))
    return "there is no --list; `rlock status` lists the locks that are on hold, too";
  if (name == "release" && is_for(subcommand, Subcommand::hold))
    return "there is no --release; did you mean --end?";
  if (std::string other = translate(name, "--", subcommand); !other.empty())
    return other;
  if (std::string why = reason_to_miss(name, "--"); !why.empty())
    return why;
  const std::string nearest = suggest_option(name, "--", [&](const Option& o) { return may_have(subcommand, o); });
  return nearest.empty() ? "" : fmt::format("unknown option '--{}'{}", redis::mask_password(name), nearest);
}

std::string see_help(const SubcommandEntry* subcommand) {
  return fmt::format("; see `rlock {}--help`", subcommand == nullptr ? "" : fmt::format("{} ", subcommand->name));
}

std::string describe_unknown(const std::string& word, const SubcommandEntry* subcommand) {
  const std::string remedy = remedy_for(word, subcommand);
  return remedy.empty() ? fmt::format("unknown option '{}{}'{}",
                                      is_long(word) ? "--" : "-",
                                      redis::mask_password(name_of(word)),
                                      see_help(subcommand))
                        : remedy;
}

/// Refuses `-try 5`, which reads as `-t` with a value, and `-k=b`, which reads as the key "=b".
void refuse_slips(const Words& words) {
  for (const Given& given : words.options) {
    const Option& option = *given.option;
    const std::string& value = given.values.back().text;
    const auto attached = std::find_if(words.line.begin(), words.line.end(), [&](const std::string& word) {
      return word.starts_with('-') && !is_long(word) && word.ends_with(option.letter + value);
    });
    if (option.letter == '\0' || attached == words.line.end())
      continue;
    if (option.value == "D" && std::isalpha(static_cast<unsigned char>(value[0])) != 0)
      refuse(fmt::format("unknown option '{}'{}", redis::mask_password(*attached), see_help(words.subcommand)));
    if (value.starts_with('='))
      refuse(redis::mask_password(
          fmt::format("write -{} {} instead of -{}{}", option.letter, value.substr(1), option.letter, value)));
  }
}

/// Refuses `-ttl 5`, which reads as `-t` with a value, and other long names behind a single dash.
void refuse_single_dash(std::string_view word, const SubcommandEntry* subcommand) {
  if (!is_option(word) || is_long(word))
    return;
  const std::string name{word.substr(1, word.find('=') - 1)};
  if (name == "timeout")
    refuse(fmt::format("there is no -timeout; {}", instead_of_timeout));
  if (const std::string why = reason_to_miss(name, "-"); !why.empty())
    refuse(why);
  if (find_option(name) != nullptr)
    refuse(fmt::format("unknown option '-{0}'; did you mean --{0}?", name));
  if (const std::string other = translate(name, "-", subcommand); !other.empty())
    refuse(other);
}

/// Refuses `--once -n`: it lacks its value, or the value is meant to begin with a dash.
void refuse_option_as_value(const Option& option, const std::string& word) {
  if (!is_option(word) || (!is_long(word) && std::isalpha(static_cast<unsigned char>(word[1])) == 0))
    return;
  const bool has_vowel = option.value.starts_with('I') || option.value == "N" || option.value.starts_with("N[");
  const std::string_view article = !option.choices().empty() ? "" : has_vowel ? "an " : "a ";
  const std::string value = redis::mask_password(word.substr(0, word.find('=')));  // what follows may be a password
  refuse(fmt::format("--{0} takes {1}{2}, not {3}; if that is the value, write --{0}={4}{5}",
                     option.name,
                     article,
                     option.value,
                     value,
                     visible_shell_word(value),
                     value.size() < word.size() ? "=..." : ""));
}

/// Refuses `--for 1 h`, whose second word would be a lock, and `--since 2026-11-22 08:00` without quotes. After a key
/// (`after_key`) it also refuses a second word behind --note.
void refuse_split_value(const Option& option, const std::string& value, const std::string& next, bool after_key) {
  if (option.name == "once" && value == "per")
    refuse("--once per: write --once-per PERIOD");
  const bool takes_duration = option.value.starts_with('D') || option.name == "once-per";
  const std::string meant = takes_duration && !next.empty() ? meant_duration(value + ' ' + next) : "";
  if (!meant.empty())
    refuse(fmt::format("--{} {} {}: write {} (or -k {}, if that is the lock)", option.name, value, next, meant, next));
  const bool is_clock = !next.empty() && is_digits(next.substr(0, 1)) && next.find(':') != std::string::npos;
  if (is_clock && option.value.ends_with("TIME"))
    refuse(fmt::format("--{0} {1} {2}: write '{1} {2}', in quotes", option.name, value, next));
  if (option.name == "until" && names_coming_day(next) && !names_coming_day(value))
    refuse(fmt::format("--until {0} {1}: write '{1} {0}', in quotes (or -k {1}, if that is a lock)", value, next));
  if (option.value == "TEXT" && after_key && !next.empty() && !is_option(next))
    refuse(redis::mask_password(fmt::format(
        "--{0} {1} {2}: write '{1} {2}', in quotes (or {2} before --{0}, if it is a lock)", option.name, value, next)));
}

/// Refuses the long dashes into which word processors turn hyphens: the word would be a lock.
void refuse_typographic_dash(const std::string& word) {
  const bool is_dash = word.starts_with("\u2013") || word.starts_with("\u2014");
  if (!is_dash)
    return;
  std::string_view rest{word};
  while (rest.starts_with("\u2013") || rest.starts_with("\u2014") || rest.starts_with('-'))
    rest.remove_prefix(rest.starts_with('-') ? 1 : std::string_view{"\u2013"}.size());
  const std::string name{rest.substr(0, rest.find('='))};
  refuse(fmt::format("write hyphens instead of the long dash: {}{}", name.size() == 1 ? "-" : "--", name));
}

/// Refuses words that, where they stand, mean something other than was meant.
void refuse_misplaced(const Words& words) {
  const Option* awaiting = nullptr;  // the option whose value the word is
  bool has_key = words.find("key") != nullptr;
  bool has_name = words.subcommand == nullptr;
  for (std::size_t i = 0; i < words.line.size(); ++i) {
    const std::string& word = words.line[i];
    const std::string next = i + 1 < words.line.size() ? words.line[i + 1] : "";
    if (awaiting != nullptr) {
      refuse_option_as_value(*awaiting, word);
      refuse_split_value(*awaiting, word, next, has_key);
      awaiting = nullptr;
      continue;
    }
    refuse_typographic_dash(word);
    refuse_single_dash(word, words.subcommand);
    awaiting = option_that_awaits_value(word, words.subcommand);
    if (const auto equals = word.find('='); is_long(word) && equals != std::string::npos && find_long(word) != nullptr)
      refuse_split_value(*find_long(word), word.substr(equals + 1), next, has_key);
    const bool is_name = !has_name && word == words.subcommand->name;
    has_name = has_name || is_name;
    has_key = has_key || (!is_option(word) && !is_name);
  }
}

/// The command that seems to stand where only the key and options may: `run backup pg_dump -h db`. Its options are not
/// ours then.
std::string command_without_dashes(const Words& words) {
  const std::size_t keys = words.find("key") != nullptr ? 0 : 1;
  return is_for(words.subcommand, Subcommand::run) && !words.has_dashes && words.plain.size() > keys ? words.plain[keys]
                                                                                                     : "";
}

/// Refuses the host of redis-cli's -h.
void refuse_host(const Words& words) {
  const auto letter = std::find(words.line.begin(), words.line.end(), "-h");
  if (letter == words.line.end() || std::next(letter) == words.line.end())
    return;
  const std::string& host = *std::next(letter);
  if (const std::string command = command_without_dashes(words); !command.empty() && command != host)
    return;
  if (!host.starts_with('-') && host != "help" && find_subcommand(host) == nullptr && suggest_subcommand(host).empty())
    refuse(fmt::format("-h is --help; to name a server write --redis redis://{}", redis::mask_password(host)));
}

/// "; it is one of run, acquire, renew". A letter may be another option there.
std::string name_owners(const Option& option, bool is_spelled) {
  std::string names;
  for (const SubcommandEntry& entry : all_subcommands()) {
    const Option& its = is_spelled ? option : *find_option(option.letter, &entry);
    if (its.belongs_to(entry.id))
      names += fmt::format("{}{}", names.empty() ? "; it is one of " : ", ", entry.name);
  }
  return names;
}

/// What was probably meant by an option that the subcommand does not have.
std::string remedy_for_foreign(const Option& given, bool is_spelled, Subcommand subcommand) {
  const std::string_view option = given.name;
  if (option == "json" && subcommand == Subcommand::acquire)
    return "; write --output json";
  if (option == "wait" && subcommand == Subcommand::status)
    return "; did you mean --watch?";
  if (option == "follow" && subcommand == Subcommand::release)  // both are -f
    return "; did you mean --force?";
  if (option == "end" && subcommand == Subcommand::release)
    return "; to end a hold write `rlock hold KEY --end`";
  if (option == "until" && subcommand == Subcommand::log)
    return "; log has --since, and --json, from which jq selects what you want";
  return name_owners(given, is_spelled);
}

/// Refuses an option of other subcommands, under the name by which the line gives it: many type -f for --force.
void refuse_foreign(const Option& option, const Words& words) {
  const SubcommandEntry& entry = *words.subcommand;
  if (option.belongs_to(entry.id))
    return;
  const bool is_spelled = std::any_of(words.line.begin(), words.line.end(), [&](const std::string& word) {
    return is_long(word) && find_long(word) == &option;
  });
  const std::string name = is_spelled ? fmt::format("--{}", option.name) : fmt::format("-{}", option.letter);
  refuse(
      fmt::format("{} is not an option of {}{}", name, entry.name, remedy_for_foreign(option, is_spelled, entry.id)));
}

std::string describe_incomplete(const Option& option) {
  if (option.name == "lines")
    return "--lines needs a value; -n is --lines N for log, and --nonblock for run and acquire";
  return fmt::format("--{} needs a value{}", option.name, option.value == "D" ? ", such as 30 (seconds) or 5m" : "");
}

/// What was meant by a number behind -n, which takes none: `-n 5 KEY`, where it was taken for the key, or `KEY -n 5`.
std::string explain_number(const Words& words) {
  const auto number = std::find_if(
      words.plain.begin(), words.plain.begin() + 2, [](const std::string& word) { return is_digits(word); });
  if (number == words.plain.begin() + 2 || words.find("nonblock") == nullptr)
    return "";
  return fmt::format("; -n takes no number: write -w {0} to wait, or --slots {0} for {0} holders", *number);
}

/// Refuses what stands before `--`, or instead of it, and is neither an option nor the key.
void check_words_of_run(const Words& words) {
  const bool has_key = words.find("key") != nullptr;
  const std::size_t keys = has_key ? 0 : 1;
  if (words.plain.size() <= keys && (words.has_dashes || words.unknown.empty() || words.plain.empty()))
    return;
  const std::string word = redis::mask_password(words.plain[std::min(keys, words.plain.size() - 1)]);
  if (words.has_dashes && has_key)
    refuse(fmt::format("unexpected '{}': the key is given by --key already", word));
  if (words.has_dashes)
    refuse(fmt::format(
        "unexpected '{}': only the key and options may stand between run and `--`{}", word, explain_number(words)));
  const std::string_view and_key = has_key || words.plain.size() > 1 ? "" : ", and the key before it";
  if (!words.unknown.empty() && is_long(words.unknown.front()))
    refuse(fmt::format("unknown option '--{}'; if it is for '{}', write `--` before the command{}",
                       redis::mask_password(name_of(words.unknown.front())),
                       word,
                       and_key));
  refuse(fmt::format("unexpected '{}': write `--` before the command{}", word, and_key));
}

/// Whether the mistake is an unknown option of `run`, as in `run backup -c 'tar ...'`, and not a missing `--` before a
/// command with options, as in `run ls -la`.
bool is_unknown_at_fault(const Words& words) {
  if (words.unknown.empty() || words.has_dashes || words.before_unknown == 0)
    return !words.unknown.empty();
  return words.before_unknown == 1 && !remedy_for(words.unknown.front(), words.subcommand).empty();
}

/// Refuses an option of `release` without the one that it is about. A configuration file may have it for the others.
void refuse_alone(const Words& words) {
  struct Need {
    std::string_view option;
    std::string_view other;
    std::string_view advice;
  };
  constexpr auto needs = std::to_array<Need>({
      {"fence", "force", ""},
      {"now", "force", ""},
      {"wait", "force", ""},
      {"hold", "force", "; to keep a lock free without breaking it write `rlock hold KEY --for D`"},
      {"note", "hold", ", for which it is the reason"},
  });
  for (const Need& need : needs) {
    if (words.find(need.option) != nullptr && words.find(need.other) == nullptr)
      refuse(fmt::format("--{} needs --{}{}", need.option, need.other, need.advice));
  }
}

void check_words(const Words& words) {
  if (words.subcommand->id == Subcommand::run && !is_unknown_at_fault(words))
    check_words_of_run(words);
  if (!words.unknown.empty())
    refuse(describe_unknown(words.unknown.front(), words.subcommand));
  for (const Given& given : words.options) refuse_foreign(*given.option, words);
  if (words.incomplete != nullptr) {
    refuse_foreign(*words.incomplete, words);
    refuse(describe_incomplete(*words.incomplete));
  }
  check_consistency(words.options);
  if (words.subcommand->id == Subcommand::release)
    refuse_alone(words);
}

[[noreturn]] void refuse_plain(const std::string& word, std::string_view why) {
  refuse(fmt::format("unexpected '{}': {}", redis::mask_password(word), why));
}

/// Refuses the word behind the key of a subcommand that takes one key.
[[noreturn]] void refuse_second_key(const std::string& word, Subcommand id, std::string_view why) {
  if (lock::Token::parse(word))
    refuse("a token is given by --token, or by --token - on standard input");  // and not shown
  const std::string ttl = find_option("ttl")->belongs_to(id) ? meant_duration(word) : "";
  if (!ttl.empty())
    refuse_plain(word, fmt::format("did you mean --ttl {}?", ttl));
  if (id == Subcommand::release && is_digits(word))
    refuse_plain(word, fmt::format("did you mean --fence {}?", word));
  refuse_plain(word, why);
}

void take_positional_keys(const Words& words, Settings& settings) {
  if (words.plain.empty())
    return;
  const Subcommand id = words.subcommand->id;
  if (words.subcommand->keys == Keys::none)
    refuse_plain(words.plain[0], "check looks at servers, not at locks; to name one write --redis redis://HOST:PORT");
  const bool acquires = id == Subcommand::acquire;
  const std::string_view no_command = "acquire takes one key and no command; `rlock run` runs a command";
  if (words.find("key") != nullptr)
    refuse_plain(words.plain[0], acquires ? no_command : "the key is given by --key already");
  if (words.plain.size() > 1 && words.subcommand->keys == Keys::one)
    refuse_second_key(words.plain[1], id, acquires ? no_command : "one key is enough");
  settings.keys.clear();
  for (const std::string& word : words.plain) {  // a server's URL as the name of a lock would show its password to all
    if (word.find("://") != std::string::npos && word.find('@') != std::string::npos)
      refuse_plain(word, "to name a server write --redis URL; for a lock that is called so write --key");
    if (std::find(settings.keys.begin(), settings.keys.end(), word) == settings.keys.end())
      settings.keys.push_back(word);
  }
  settings.key_origin = positional_key;
}

/// `rlock --help`, `rlock SUBCOMMAND --help`, `rlock help SUBCOMMAND`.
std::optional<std::string> find_help(const Words& words) {
  const bool asked = words.asks_for_help();
  const SubcommandEntry* about = asked && words.plain.size() > 1 ? find_subcommand(words.plain[1]) : words.subcommand;
  const bool about_all = words.plain.empty() || (asked && (words.plain.size() == 1 || words.plain[1] == "help"));
  const bool is_known = about != nullptr || about_all;
  if (asked && is_known && words.plain.size() > 2)
    refuse(fmt::format("unexpected '{}': help explains one subcommand", redis::mask_password(words.plain[2])));
  if (is_known && (asked || words.find("help") != nullptr))
    return about == nullptr ? usage() : help(*about);
  if (words.find("version") != nullptr)
    return fmt::format("rlock {}\n{}", RLOCK_VERSION, redis::library_versions());
  return std::nullopt;
}

/// What to write instead of the first of these words, which is no subcommand. Perhaps they are `KEY SUBCOMMAND`, `KEY
/// COMMAND`, as flock has it, or `VERB KEY -- COMMAND`, as others do. The command is not shown, since it may hold a
/// secret.
std::string remedy_for_subcommand(const Line& plain, const Words& words, const std::string& suggestion) {
  const bool has_command = !words.command.empty();
  if (plain.size() > 1 && find_subcommand(plain[1]) != nullptr)
    return fmt::format("; write `rlock {} {}{}`",
                       plain[1],
                       visible_shell_word(redis::mask_password(plain[0])),
                       plain[1] == "run" ? " -- COMMAND" : "");
  const bool is_verb = plain.size() > 1 && (has_command || is_subcommand_elsewhere(plain[0]));
  const std::size_t enough = suggestion.empty() ? 1 : 2;
  if (plain.size() < words.plain.size() || (words.plain.size() <= enough && !has_command))
    return suggestion;
  const std::string key = visible_shell_word(redis::mask_password(plain[is_verb ? 1 : 0]));
  return fmt::format("; to run a command write `rlock run {} -- COMMAND`{}", key, suggestion);
}

/// Why a line that has no valid subcommand and asks for no help is wrong.
std::string describe_fault(const Words& words) {
  const Line plain{words.plain.begin() + (words.asks_for_help() ? 1 : 0), words.plain.end()};
  const std::string suggestion = plain.empty() ? "" : suggest_subcommand(plain[0]);
  const bool may_be_value = words.before_unknown == 0 && suggestion.empty();
  if (!words.unknown.empty() && (plain.empty() || may_be_value))
    return describe_unknown(words.unknown.front(), nullptr);
  if (!plain.empty())
    return fmt::format(
        "unknown subcommand '{}'{}", redis::mask_password(plain[0]), remedy_for_subcommand(plain, words, suggestion));
  if (!words.command.empty())
    return "no subcommand before `--`";
  return words.options.empty() ? "no subcommand" : "no subcommand, only options";
}

}  // namespace

Words read_words(std::span<const char* const> given) {
  const Line all(given.begin(), given.end());
  const auto dashes = std::find(all.begin(), all.end(), "--");
  Words words;
  words.line.assign(all.begin(), dashes);
  words.has_dashes = dashes != all.end();
  Line line = words.line;
  const auto name = find_subcommand_word(line);
  words.subcommand = name == line.end() ? nullptr : find_subcommand(*name);
  if (words.subcommand != nullptr)
    line.erase(name);
  sort_words(separate_values(line, words.subcommand), words);
  if (words.has_dashes) {
    const bool is_command = words.subcommand == nullptr || words.subcommand->id == Subcommand::run;
    auto& rest = is_command ? words.command : words.plain;
    rest.insert(rest.end(), std::next(dashes), all.end());
  }
  return words;
}

Settings read_settings(const Words& words) {
  Settings settings = read_settings(words.subcommand->id, words.options);
  take_positional_keys(words, settings);
  return settings;
}

void blot_passwords(int argc, char** argv) {
  for (int i = 1; i < argc && argv[i] != std::string_view{"--"}; ++i) {
    const std::span<char> word{argv[i], std::strlen(argv[i])};
    if (std::string_view{argv[i]}.find("://") != std::string_view::npos)
      redis::blot_password(word);
  }
}

Invocation parse_arguments(int argc, const char* const* argv) {
  const Words words = read_words({argv + std::min(argc, 1), argv + argc});
  refuse_host(words);
  refuse_misplaced(words);
  refuse_slips(words);
  Invocation invocation;
  invocation.text = command_without_dashes(words).empty() ? find_help(words) : std::nullopt;
  if (invocation.text)
    return invocation;
  if (words.subcommand == nullptr) {
    invocation.fault = describe_fault(words);
    invocation.text = words.line.empty() && !words.has_dashes ? usage() : short_usage();
    return invocation;
  }
  check_words(words);
  invocation.subcommand = words.subcommand;
  invocation.settings = read_settings(words);
  invocation.settings.command = words.command;
  if (words.subcommand->id == Subcommand::run && words.command.empty())
    refuse("no command; write `rlock run KEY -- COMMAND`");
  return invocation;
}

bool is_for_eval(const std::vector<std::string_view>& words) {
  bool acquires = false;
  std::string_view output = "token";
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    acquires = acquires || words[i] == "acquire";
    if (words[i].starts_with("--output="))
      output = words[i].substr(words[i].find('=') + 1);
    else if (words[i - 1] == "--output")
      output = words[i];
  }
  constexpr std::array shell{std::string_view{"shell"}};
  return acquires && (output == shell[0] || !did_you_mean(output, shell).empty());
}

}  // namespace rlock::cli
