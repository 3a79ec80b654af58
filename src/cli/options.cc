#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/word.h"

namespace rlock::cli {
namespace {

constexpr unsigned run = static_cast<unsigned>(Subcommand::run);
constexpr unsigned acquire = static_cast<unsigned>(Subcommand::acquire);
constexpr unsigned renew = static_cast<unsigned>(Subcommand::renew);
constexpr unsigned release = static_cast<unsigned>(Subcommand::release);
constexpr unsigned status = static_cast<unsigned>(Subcommand::status);
constexpr unsigned history = static_cast<unsigned>(Subcommand::log);
constexpr unsigned check = static_cast<unsigned>(Subcommand::check);
constexpr unsigned hold = static_cast<unsigned>(Subcommand::hold);
constexpr unsigned takers = run | acquire;
constexpr unsigned with_key = takers | renew | release | hold | status | history;
constexpr unsigned every = ~0U;

// In milliseconds.
constexpr long long second = 1000;
constexpr long long day = 86'400 * second;
constexpr long long shortest_ttl = 500;
constexpr long long longest_ttl = 7 * day;
constexpr long long longest_hold = 90 * day;
constexpr long long longest_duration = 3650 * day;

/// The setting at the end of a path of one or two members, such as &Settings::tls, &TlsOptions::ca.
template <auto member>
auto& at(Settings& settings) {
  return settings.*member;
}
template <auto member, auto part>
auto& at(Settings& settings) {
  return settings.*member.*part;
}

template <auto... path>
void flag(Settings& s, const Value& v) {
  at<path...>(s) = v.flag();
}

template <auto... path>
void text(Settings& s, const Value& v) {
  at<path...>(s) = v.bytes();
}

template <long long low, long long high, auto... path>
void number(Settings& s, const Value& v) {
  at<path...>(s) = static_cast<int>(v.number(low, high));
}

template <long long low, long long high, auto... path>
void duration(Settings& s, const Value& v) {
  at<path...>(s) = v.duration(Milliseconds{low}, Milliseconds{high});
}

/// The enumerators stand in the order of the words in the same row of the table.
template <auto member, auto... enumerators>
void choice(Settings& s, const Value& v) {
  s.*member = std::array{enumerators...}.at(v.index);
}

template <Verbosity verbosity>
void verbose(Settings& s, const Value& v) {
  if (v.flag())
    s.verbosity = verbosity;
}

void add_redis(Settings& s, const Value& v) {
  try {
    s.redis.push_back(redis::parse_address(v.text));
    s.redis.back().origin = v.origin;
  } catch (const Error& error) {
    throw Error{v.fault, fmt::format("{}: {}", v.origin, error.what())};
  }
}

void set_prefix(Settings& s, const Value& v) { s.prefix = v.text; }

void set_key(Settings& s, const Value& v) {
  s.keys = {v.text};
  s.key_origin = v.origin;
}

/// Redis counts in milliseconds, and so do many libraries for locks: a bare number that is hours or more was probably
/// meant so.
void set_ttl(Settings& s, const Value& v) {
  constexpr Milliseconds suspect{3600 * second};
  const bool is_bare = v.text.find_first_not_of("0123456789.") == std::string::npos;
  const std::string meant = is_bare ? fmt::format("for milliseconds write {}ms", v.text) : "";
  s.ttl = v.duration(Milliseconds{shortest_ttl}, Milliseconds{longest_ttl}, meant.empty() ? "" : "; " + meant);
  if (is_bare && s.ttl >= suspect)
    s.doubts.push_back(fmt::format("{}: {} is {}; {}", v.origin, v.text, format_duration(*s.ttl), meant));
}

void set_timeout(Settings& s, const Value& v) {
  s.timeout =
      v.duration(Milliseconds{1}, Milliseconds{60 * second}, "; it is for one answer: see --max-runtime and --wait");
}

void set_token(Settings& s, const Value& v) {
  s.token_from_stdin = v.text == "-";
  if (!s.token_from_stdin)
    s.token = v.token();
}

void set_replicas(Settings& s, const Value& v) {
  std::string_view rest = v.text;
  Value part = v;
  part.text = take_word(rest, ':');
  lock::Replicas replicas{.count = static_cast<int>(part.number(1, 1000))};
  if (v.text.find(':') != std::string::npos) {
    part.text = rest;
    replicas.limit = part.duration(Milliseconds{1}, Milliseconds{60 * second});
  }
  s.replicas = replicas;
}

/// The period that "daily" and the like mean; empty for other words.
std::string_view period_of_adverb(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> adverbs{
      {{"hourly", "hour"}, {"daily", "day"}, {"weekly", "week"}, {"monthly", "month"}}};
  for (const auto& [adverb, noun] : adverbs) {
    if (word == adverb)
      return noun;
  }
  return {};
}

/// Refuses what names a period rather than one piece of work, which would never be done again.
void check_once(const Value& v) {
  const std::string_view period = parse_period(v.text) ? std::string_view{v.text} : period_of_adverb(v.text);
  if (!period.empty())
    v.refuse(fmt::format("'{}' would be done once and never again; write --once-per {}", v.text, period));
}

void set_once(Settings& s, const Value& v) {
  check_once(v);
  constexpr std::size_t longest_id = 128;
  if (v.text.empty() || v.text.size() > longest_id)
    v.refuse(fmt::format("it is {} bytes long; an ID has 1 to {}", v.text.size(), longest_id));
  s.once = v.text;
}

/// The period that "daily", "Day", "days" and "1day" mean; empty for other words, and for a period itself.
std::string meant_period(std::string_view text) {
  if (text.starts_with('1') && text.size() > 1)
    text.remove_prefix(std::min(text.find_first_not_of(' ', 1), text.size()));
  std::string word = lower(text);
  if (const std::string_view period = period_of_adverb(word); !period.empty())
    return std::string{period};
  if (word.ends_with('s'))
    word.pop_back();
  return parse_period(word) ? word : "";
}

void set_once_per(Settings& s, const Value& v) {
  const bool is_word = !v.text.empty() && v.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
  s.period = parse_period(v.text);
  if (const std::string period = s.period ? "" : meant_period(v.text); !period.empty())
    v.refuse(fmt::format("'{}' is no period; did you mean {}?", v.text, period));
  if (!s.period && is_word)
    v.refuse_word(period_names, ", or a duration such as 20h");
  if (!s.period)
    s.once_per = v.duration(Milliseconds{1}, Milliseconds{30 * day});
}

/// Refuses what other tools take for a range: `10m-1h`, `10m:1h`, `10m...1h`.
void check_range(const Value& v) {
  constexpr std::string_view signs = ".-:,/ ";
  const auto end = std::min(v.text.find("..."), v.text.find_first_of(signs.substr(1)));
  const auto next = v.text.find_first_not_of(signs, end);
  if (next == std::string::npos || end == std::string::npos)
    return;
  const std::string first = v.text.substr(0, end);
  const std::string last = v.text.substr(next);
  if (parse_duration(first) && parse_duration(last))
    v.refuse(fmt::format("'{}' is not D..MAX; write {}..{}", v.text, first, last));
}

void set_backoff(Settings& s, const Value& v) {
  check_range(v);
  constexpr Milliseconds longest{30 * day};
  constexpr Milliseconds usual{day};
  const auto dots = v.text.find("..");
  Value part = v;
  part.text = v.text.substr(0, dots);
  const Milliseconds first = part.duration(Milliseconds{1}, longest);
  lock::Cooldown backoff{.first = first, .most = std::max(first, usual)};
  if (dots != std::string::npos) {
    part.text = v.text.substr(dots + 2);
    backoff.most = part.duration(Milliseconds{1}, longest);
    if (backoff.most < first)
      v.refuse(fmt::format(
          "{} is longer than {}; write {}..{}", v.text.substr(0, dots), part.text, part.text, v.text.substr(0, dots)));
  }
  s.backoff = backoff;
}

void set_since(Settings& s, const Value& v) {
  if (const auto time = parse_time(v.text)) {
    if (*time > wall_now())
      v.refuse(fmt::format("{} is yet to come", v.text));
    s.since = *time;
  } else if (!has_form_of_duration(v.text) && meant_duration(v.text).empty()) {
    v.refuse(
        fmt::format("'{}' is neither a time such as 08:00, 15:30, yesterday, 2026-11-22 or '2026-11-22 08:00', "
                    "nor a duration such as 30m or 7d",
                    v.text));
  } else {
    s.since = v.duration(Milliseconds{1}, Milliseconds{longest_duration});
  }
}

void set_until(Settings& s, const Value& v) {
  const WallTime now = wall_now();
  const auto time = parse_time_to_come(v.text, now);
  if (!time) {
    const bool has_sign = v.text.starts_with('+');
    const std::string from_now = meant_duration(std::string_view{v.text}.substr(has_sign ? 1 : 0));
    if (names_coming_day(v.text))
      v.refuse(fmt::format("'{0}' lacks the time of day; write '{0} 08:00'", v.text));
    v.refuse(fmt::format(
        "'{}' is not a time such as 08:00, 15:30, 'tomorrow 08:00', 'mon 08:00', 2026-11-25 or '2026-11-25 08:00'{}",
        v.text,
        from_now.empty() ? "" : "; for a time from now write --for " + from_now));
  }
  if (*time <= now)
    v.refuse(fmt::format("{} has passed", v.text));
  if (*time > now + Milliseconds{longest_hold})
    v.refuse(fmt::format("{} is too far away; it must be within {}", v.text, format_limit(Milliseconds{longest_hold})));
  s.hold_end = *time;
}

void set_for(Settings& s, const Value& v) {
  if (!has_form_of_duration(v.text) && parse_time_to_come(v.text, wall_now()))
    v.refuse(fmt::format("'{0}' is a time and not a duration; write --until '{0}'", v.text));
  s.hold_end = v.duration(Milliseconds{1}, Milliseconds{longest_hold});
}

/// `release --hold` cuts no hold short that is there already.
void set_hold(Settings& s, const Value& v) {
  s.hold_end = lock::AtLeast{v.duration(Milliseconds{1}, Milliseconds{longest_hold})};
}

/// --exclusive is the default: it only contradicts the others.
void check_exclusive(Settings& /*settings*/, const Value& v) { v.flag(); }

/// Other tools have a word for a wait without a limit.
void set_wait(Settings& s, const Value& v) {
  constexpr std::array<std::string_view, 5> endless{"-1", "forever", "inf", "infinite", "never"};
  if (std::find(endless.begin(), endless.end(), v.text) != endless.end())
    v.refuse(fmt::format("'{}' is not a duration; to wait for ever leave it out", v.text));
  s.wait = v.duration(Milliseconds{0}, Milliseconds{longest_duration});
}

void set_signal(Settings& s, const Value& v) { s.first_signal = v.signal(); }

void set_conflict(Settings& s, const Value& v) { s.conflict = ExitCode{static_cast<int>(v.number(0, 255))}; }

void set_fence(Settings& s, const Value& v) { s.fence = {v.number(1, largest_whole)}; }

using S = Settings;
using Tls = redis::TlsOptions;
using rlock::run::AtEnd;
using rlock::run::OnLost;

// clang-format off
constexpr Option options[] = {
  {'k', "key",                 "K",                with_key,          Section::lock, "",
   "Name of the lock, in place of KEY", set_key},
  {'t', "ttl",                 "D",                takers | renew,    Section::lock, "",
   "Lease: rlock renews it while the command runs; after a crash the lock is free within D [30s]", set_ttl},
  {'n', "nonblock",            "",                 takers,            Section::lock, "",
   "Fail at once if the lock is held", flag<&S::nonblock>},
  {'w', "wait",                "D",                takers | release,  Section::lock, "",
   "Wait for the lock for D at most [for ever]; Redis must answer when rlock starts", set_wait},
  {'E', "conflict-exit-code",  "N",                takers,            Section::lock, "",
   "Exit status when the lock was not acquired [75]", set_conflict},
  {'x', "exclusive",           "",                 takers,            Section::lock, "",
   "Hold the lock alone, as a writer (the default)", check_exclusive},
  {'s', "shared",              "",                 takers,            Section::lock, "",
   "Share the lock with other readers", flag<&S::shared>},
  {0,   "slots",               "N",                takers,            Section::lock, "",
   "At most N holders at a time [1]", number<1, 100'000, &S::slots>},
  {0,   "max-waiting",         "N",                takers,            Section::advanced, "",
   "Fail at once if N are waiting already [no limit]", number<0, 1'000'000, &S::max_waiting>},
  {0,   "latest",              "",                 takers,            Section::lock, "",
   "Of the waiters with this option, only the newest stays", flag<&S::latest>},
  {0,   "replace",             "",                 run,               Section::lock, "",
   "Like --latest, and evict a holder that itself has --replace", flag<&S::replace>},
  {0,   "first",               "",                 takers,            Section::lock, "",
   "Wait at the head of the queue, behind others with --first", flag<&S::first>},
  {0,   "min-hold",            "D",                takers,            Section::lock, "",
   "Keep the lock taken until D after it was acquired; choose D longer than clocks differ, and shorter than the time between two starts [0]",
   duration<0, longest_ttl, &S::min_hold>},
  {0,   "backoff",             "D[..MAX]",         takers,            Section::lock, "",
   "After the end of a failed run, grant the lock to nobody for D; twice as long after each further failure, at most MAX [1d]; D..D is always D",
   set_backoff},
  {0,   "replicas",            "N[:D]",            takers,            Section::advanced, "",
   "Fail unless N replicas have the lock within D [1s]", set_replicas},
  {0,   "holder",              "NAME",             takers | hold,            Section::advanced, "",
   "Holder's name for status to show [user@host]", text<&S::holder>},
  {0,   "note",                "TEXT",             takers | hold | release,  Section::lock, "",
   "A remark that status and log show", text<&S::note>},
  {0,   "no-command",          "",                 takers,            Section::command, "RLOCK_NO_COMMAND",
   "Tell Redis the program's name, not its arguments", flag<&S::no_command>},

  {0,   "renew-every",         "D",                run,               Section::advanced, "",
   "Time between renewals [a third of --ttl]", duration<10, longest_ttl, &S::renew_every>},
  {0,   "kill-after",          "D",                run,               Section::advanced, "",
   "Time from the first signal to KILL [a quarter of --ttl, at most 5s]", duration<0, longest_ttl, &S::kill_after>},
  {0,   "signal",              "SIG",              takers,            Section::advanced, "",
   "First signal to a command that must stop [TERM]", set_signal},
  {0,   "on-lost",             "kill|warn",        run,               Section::command, "",
   "What to do when the lease can no longer be kept [kill]", choice<&S::on_lost, OnLost::kill, OnLost::warn>},
  {0,   "at-end",              "leave|wait|kill",  run,               Section::command, "",
   "What to do with the processes that the command leaves running when it exits [leave]",
   choice<&S::at_end, AtEnd::leave, AtEnd::wait, AtEnd::kill>},
  {0,   "max-runtime",         "D",                run,               Section::command, "",
   "Stop the command D after its start, and exit with 124 [no limit]", duration<1, longest_duration, &S::max_runtime>},
  {0,   "once",                "ID",               run,               Section::lock, "",
   "Do nothing and exit with 0 if the last run that ended with 0 had this ID", set_once},
  {0,   "once-per",            "PERIOD",           run,               Section::lock, "",
   "Run once per minute, hour, day, week (from Monday) or month of the local calendar; or, if PERIOD is a "
   "duration, do nothing if a run that got the lock less than that ago ended with 0", set_once_per},
  {0,   "attempts",            "N",                run,               Section::lock, "",
   "With --once or --once-per: when N runs for this ID or PERIOD have failed, exit with 75, or what -E says; runs "
   "that were told to stop do not count [no limit]",
   number<1, 50, &S::attempts>},
  {0,   "report",              "FILE",             run,               Section::output, "",
   "Write how the run ended to FILE, as a JSON object", text<&S::report>},

  {0,   "output",              "token|shell|json", acquire,           Section::output, "",
   "Print the token, a line for eval, or an object [token]", choice<&S::output, Output::token, Output::shell, Output::json>},
  {0,   "hold-pid",            "PID",              acquire,           Section::command, "",
   "Renew in the background until PID ends, then release", number<1, 4'194'304, &S::hold_pid>},
  {0,   "token",               "T",                renew | release,   Section::lock, "",
   "The token that acquire printed; - reads it from stdin [RLOCK_TOKEN or RLOCK_HELD]", set_token},
  {0,   "force",               "",                 release,           Section::lock, "",
   "Make the holder stop its command (or signal the script of --hold-pid) and give the lock up, and wait for that",
   flag<&S::force>},
  {0,   "now",                 "",                 release,           Section::lock, "",
   "With --force: take the lock away at once; its command may run on", flag<&S::now>},
  {0,   "fence",               "N",                release,           Section::lock, "",
   "With --force: only if the acquisition with fence N, as status shows it, holds the lock", set_fence},
  {0,   "hold",                "D",                release,           Section::lock, "",
   "With --force: first put the lock on hold for D, so that nobody gets it next, even if --fence does not match; `rlock hold KEY --end` ends that",
   set_hold},
  {0,   "for",                 "D",                hold,              Section::lock, "",
   "Grant the lock to nobody for D, at most 90d", set_for},
  {0,   "until",               "TIME",             hold,              Section::lock, "",
   "Grant the lock to nobody until TIME, at most 90d away", set_until},
  {0,   "end",                 "",                 hold,              Section::lock, "",
   "End the hold; exit with 1 if there is none", flag<&S::end>},
  {0,   "json",                "",                 status | history | check, Section::output, "",
   "Print JSON on one line instead of a table", flag<&S::json>},
  {0,   "prometheus",          "",                 status,            Section::output, "",
   "Print metrics in the text format of Prometheus", flag<&S::prometheus>},
  {0,   "watch",               "",                 status,            Section::output, "",
   "Show it again every second until q is typed", flag<&S::watch>},
  {0,   "all",                 "",                 status,            Section::output, "",
   "List free locks too, and how their last run ended", flag<&S::all>},
  {'n', "lines",               "N",                history,           Section::output, "",
   "Show the last N lines of each lock, of which Redis keeps 100 [20; all with --since]", number<0, 100'000, &S::lines>},
  {0,   "since",               "D|TIME",           history,           Section::output, "",
   "Show the runs that ended less than D ago, or since TIME: 08:00 (the last), yesterday, 2026-11-22, 2026-11-22 08:00", set_since},
  {0,   "failed",              "",                 history,           Section::output, "",
   "Show only the runs that failed (exit status other than 0, signal, died, lost, timeout) or were evicted, but not by --replace", flag<&S::failed>},
  {'f', "follow",              "",                 history,           Section::output, "",
   "Then show each run as it ends; with --json, an array on each line", flag<&S::follow>},
  {0,   "timeline",            "",                 history,           Section::output, "",
   "Draw the runs, one lane for each lock [--since 24h]", flag<&S::timeline>},

  {'r', "redis",               "URL",              every,             Section::redis, redis_variable,
   "Redis server; may be given several times: a majority decides then [redis://127.0.0.1:6379/0]", add_redis},
  {0,   "username",            "NAME",             every,             Section::redis, "RLOCK_USERNAME",
   "User to authenticate as", text<&S::username>},
  {0,   "password-file",       "FILE",             every,             Section::redis, "RLOCK_PASSWORD_FILE",
   "File whose first line is the password", text<&S::password_file>},
  {0,   "cacert",              "FILE",             every,             Section::redis, "RLOCK_CACERT",
   "CA certificates for rediss://, in a file or a hashed directory [the system's]", text<&S::tls, &Tls::ca>},
  {0,   "cert",                "FILE",             every,             Section::redis, "RLOCK_CERT",
   "Certificate to show to the server", text<&S::tls, &Tls::certificate>},
  {0,   "tls-key",             "FILE",             every,             Section::redis, "RLOCK_TLS_KEY",
   "Private key of --cert [in the same file]", text<&S::tls, &Tls::key>},
  {0,   "tls-server-name",     "NAME",             every,             Section::advanced, "RLOCK_TLS_SERVER_NAME",
   "Name that the server's certificate must contain [the host]", text<&S::tls, &Tls::server_name>},
  {0,   "insecure",            "",                 every,             Section::redis, "RLOCK_INSECURE",
   "Do not verify the server's certificate", flag<&S::tls, &Tls::insecure>},
  {0,   "prefix",              "P",                every,             Section::redis, prefix_variable,
   "Prefix of the lock's key on Redis [rlock:]", set_prefix},
  {0,   "redis-timeout",       "D",                every,             Section::redis, "RLOCK_REDIS_TIMEOUT",
   "Longest wait for one answer of one server [2s]", set_timeout},
  {0,   "max-lease",           "D",                every,             Section::advanced, "RLOCK_MAX_LEASE",
   "With several servers: the longest lease that anybody uses [60s]",
   duration<shortest_ttl, longest_ttl, &S::max_lease>},
  {0,   "config",              "FILE",             every,             Section::redis, "RLOCK_CONFIG",
   "Configuration file, with lines such as `redis = URL` [/etc/rlock.conf, ~/.config/rlock.conf]", nullptr},
  {'q', "quiet",               "",                 every,             Section::output, "",
   "Print only errors and results", verbose<Verbosity::quiet>},
  {'v', "verbose",             "",                 every,             Section::output, "",
   "Print every step on stderr", verbose<Verbosity::verbose>},
  {'h', "help",                "",                 every,             Section::output, "",
   "Show this help", nullptr},
  {'V', "version",             "",                 0,                 Section::output, "",
   "Show the version", nullptr},
};
// clang-format on

/// The command and the process that --hold-pid starts may read the file from another directory.
std::string make_absolute(const std::string& file) {
  std::error_code error;
  const auto path = std::filesystem::absolute(file, error);
  return error ? file : path.string();
}

}  // namespace

std::vector<std::string_view> Option::choices() const {
  std::vector<std::string_view> out;
  const bool is_lower = !value.empty() && value[0] >= 'a' && value[0] <= 'z';  // D|TIME are no words to choose from
  std::string_view rest = !is_lower || value.find('|') == std::string_view::npos ? "" : value;
  while (!rest.empty()) out.push_back(take_word(rest, '|'));
  return out;
}

Value Option::resolve(Value given) const {
  if (is_file()) {
    if (given.text == "-")
      given.refuse(
          fmt::format("'-' would be a file of that name; write /dev/{} or ./-", name == "report" ? "stdout" : "stdin"));
    given.check_file();
    given.text = make_absolute(given.text);
  }
  const auto words = choices();
  if (words.empty())
    return given;
  const auto chosen = std::find(words.begin(), words.end(), given.text);
  if (chosen == words.end())
    given.refuse_word(words);
  given.index = static_cast<std::size_t>(chosen - words.begin());
  return given;
}

std::span<const Option> all_options() { return options; }

const Option* find_option(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(options), std::end(options), [&](const Option& o) { return o.name == name; });
  return found == std::end(options) ? nullptr : found;
}

const Option* find_option(char letter, const SubcommandEntry* subcommand) {
  const Option* found = nullptr;
  for (const Option& option : options) {
    const bool better = found == nullptr || (subcommand != nullptr && option.belongs_to(subcommand->id));
    if (option.letter == letter && letter != '\0' && better)
      found = &option;
  }
  return found;
}

std::string suggest_option(std::string_view word,
                           std::string_view dashes,
                           const std::function<bool(const Option&)>& may) {
  std::vector<std::string_view> names;
  for (const Option& option : options) {
    if (may(option))
      names.push_back(option.name);
  }
  return did_you_mean(word, names, dashes);
}

}  // namespace rlock::cli
