#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/number.h"
#include "base/signals.h"
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
constexpr unsigned takers = run | acquire;
constexpr unsigned with_key = takers | renew | release | status | history;
constexpr unsigned every = with_key | check;

// In milliseconds.
constexpr long long second = 1000;
constexpr long long day = 24 * 3600 * second;
constexpr long long shortest_ttl = 500;
constexpr long long longest_ttl = 7 * day;
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
    s.redis_origin = v.origin;
  } catch (const Error& error) {
    throw Error{v.fault, fmt::format("{}: {}", v.origin, error.what())};
  }
}

void set_key(Settings& s, const Value& v) { s.keys = {v.text}; }

void set_timeout(Settings& s, const Value& v) {
  s.timeout =
      v.duration(Milliseconds{1}, Milliseconds{60 * second}, "; it is for one answer: see --max-runtime and --wait");
}

void set_token(Settings& s, const Value& v) {
  s.token_from_stdin = v.text == "-";
  if (s.token_from_stdin)
    return;
  s.token = lock::Token::parse(v.text);
  if (!s.token)
    v.refuse("not a token; acquire prints one as 32 hexadecimal digits");  // does not show it, since it is a secret
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

void set_once(Settings& s, const Value& v) {
  constexpr std::size_t longest_id = 128;
  if (v.text.empty() || v.text.size() > longest_id)
    v.refuse(fmt::format("it is {} bytes long; an ID has 1 to {}", v.text.size(), longest_id));
  s.once = v.text;
}

void set_signal(Settings& s, const Value& v) {
  const auto number = parse_signal(v.text);
  if (!number)
    v.refuse_word(common_signals);
  s.first_signal = *number;
}

void set_conflict(Settings& s, const Value& v) { s.conflict = ExitCode{static_cast<int>(v.number(0, 255))}; }

void set_fence(Settings& s, const Value& v) { s.fence = {v.number(1, largest_whole)}; }

using S = Settings;
using Tls = redis::TlsOptions;
using rlock::run::AtEnd;
using rlock::run::OnLost;

// clang-format off
constexpr Option options[] = {
  {'k', "key",                  "K",                 with_key, "",
   "Name of the lock", set_key},
  {'t', "ttl",                  "D",                 takers | renew, "",
   "Lease: free after at most this unless it is renewed [30s]", duration<shortest_ttl, longest_ttl, &S::ttl>},
  {'n', "nonblock",             "",                  takers, "",
   "Fail at once if the lock is held", flag<&S::nonblock>},
  {'w', "wait",                 "D",                 takers | release, "",
   "Give up after D [wait for ever]", duration<0, longest_duration, &S::wait>},
  {'E', "conflict-exit-code",   "N",                 takers, "",
   "Exit status when the lock was not acquired [75]", set_conflict},
  {'x', "exclusive",            "",                  takers, "",
   "Hold the lock alone, as a writer (the default)", flag<&S::exclusive>},
  {'s', "shared",               "",                  takers, "",
   "Share the lock with other readers", flag<&S::shared>},
  {0,   "slots",                "N",                 takers, "",
   "At most N holders at a time [1]", number<1, 100'000, &S::slots>},
  {0,   "max-waiting",          "N",                 takers, "",
   "Fail at once if N are waiting already", number<0, 1'000'000, &S::max_waiting>},
  {0,   "latest",               "",                  takers, "",
   "Of the waiters with this option only the newest stays", flag<&S::latest>},
  {0,   "replace",              "",                  run, "",
   "As --latest, and evict a holder that was started with --replace", flag<&S::replace>},
  {0,   "min-hold",             "D",                 takers, "",
   "Keep it taken for at least D after it was acquired [0]", duration<0, longest_ttl, &S::min_hold>},
  {0,   "replicas",             "N[:D]",             takers, "",
   "Fail unless N replicas have the lock within D [1s]", set_replicas},
  {0,   "holder",               "NAME",              takers, "",
   "Name of the holder for status to show [user@host]", text<&S::holder>},
  {0,   "note",                 "TEXT",              takers, "",
   "A remark for status and log to show", text<&S::note>},
  {0,   "no-command",           "",                  takers,           "RLOCK_NO_COMMAND",
   "Tell Redis the program's name, not its arguments", flag<&S::no_command>},

  {0,   "renew-every",          "D",                 run, "",
   "Time between renewals [a third of --ttl]", duration<10, longest_ttl, &S::renew_every>},
  {0,   "kill-after",           "D",                 run, "",
   "Time from the first signal to KILL [a quarter of --ttl, at most 5s]", duration<0, longest_ttl, &S::kill_after>},
  {0,   "signal",               "SIG",               takers, "",
   "First signal to a command that must stop, or to the PID of --hold-pid [TERM]", set_signal},
  {0,   "on-lost",              "kill|warn",         run, "",
   "What to do when the lease can no longer be kept [kill]", choice<&S::on_lost, OnLost::kill, OnLost::warn>},
  {0,   "at-end",               "leave|wait|kill",   run, "",
   "What to do with processes that the command leaves behind [leave]",
   choice<&S::at_end, AtEnd::leave, AtEnd::wait, AtEnd::kill>},
  {0,   "max-runtime",          "D",                 run, "",
   "Stop the command D after its start; exit 124", duration<1, longest_duration, &S::max_runtime>},
  {0,   "once",                 "ID",                run, "",
   "Do nothing if the last run that ended with 0 had this ID", set_once},
  {0,   "once-per",             "D",                 run, "",
   "Do nothing if a run granted less than D ago ended with 0", duration<1, 30 * day, &S::once_per>},
  {0,   "report",               "FILE",              run, "",
   "Write how the run ended to FILE, as a JSON object", text<&S::report>},

  {0,   "output",               "token|shell|json",  acquire, "",
   "What to print [token]", choice<&S::output, Output::token, Output::shell, Output::json>},
  {0,   "hold-pid",             "PID",               acquire, "",
   "Renew in the background until PID ends, then release", number<1, 4'194'304, &S::hold_pid>},
  {0,   "token",                "T",                 renew | release, "",
   "The token that acquire printed; - reads it from stdin [RLOCK_TOKEN]", set_token},
  {0,   "force",                "",                  release, "",
   "Make the holder give the lock up, and wait for that", flag<&S::force>},
  {0,   "now",                  "",                  release, "",
   "With --force: break it at once; its command may run on", flag<&S::now>},
  {0,   "fence",                "N",                 release, "",
   "With --force: only if the holder has fence N", set_fence},
  {0,   "json",                 "",                  status | history | check, "",
   "Print JSON on one line instead of a table", flag<&S::json>},
  {0,   "prometheus",           "",                  status, "",
   "Print metrics in Prometheus' text format", flag<&S::prometheus>},
  {0,   "watch",                "",                  status, "",
   "Show it again every second until interrupted", flag<&S::watch>},
  {'n', "lines",                "N",                 history, "",
   "Show the newest N runs of each lock [20]", number<0, 100'000, &S::lines>},
  {0,   "since",                "D",                 history, "",
   "Show the runs that ended less than D ago", duration<1, longest_duration, &S::since>},
  {0,   "timeline",             "",                  history, "",
   "Draw the runs, one lane for each lock [--since 24h]", flag<&S::timeline>},

  {'r', "redis",                "URL",               every,            redis_variable,
   "The server; several are a quorum [redis://127.0.0.1:6379/0]", add_redis},
  {0,   "username",             "NAME",              every,            "RLOCK_USERNAME",
   "User to authenticate as", text<&S::username>},
  {0,   "password-file",        "FILE",              every,            "RLOCK_PASSWORD_FILE",
   "File whose first line is the password", text<&S::password_file>},
  {0,   "cacert",               "FILE",              every,            "RLOCK_CACERT",
   "CA for rediss://, a file or hashed directory [the system's]", text<&S::tls, &Tls::ca>},
  {0,   "cert",                 "FILE",              every,            "RLOCK_CERT",
   "Our certificate for rediss://", text<&S::tls, &Tls::certificate>},
  {0,   "tls-key",              "FILE",              every,            "RLOCK_TLS_KEY",
   "Its key [in the same file]", text<&S::tls, &Tls::key>},
  {0,   "tls-server-name",      "NAME",              every,            "RLOCK_TLS_SERVER_NAME",
   "Name in the server's certificate [the host]", text<&S::tls, &Tls::server_name>},
  {0,   "insecure",             "",                  every,            "RLOCK_INSECURE",
   "Do not verify the server's certificate", flag<&S::tls, &Tls::insecure>},
  {0,   "prefix",               "P",                 every,            prefix_variable,
   "Put before every key name [rlock:]", text<&S::prefix>},
  {0,   "timeout",              "D",                 every,            "RLOCK_TIMEOUT",
   "Longest wait for one answer of one server [2s]", set_timeout},
  {0,   "max-lease",            "D",                 every,            "RLOCK_MAX_LEASE",
   "With a quorum: the longest lease that anybody uses [60s]", duration<shortest_ttl, longest_ttl, &S::max_lease>},
  {0,   "config",               "FILE",              every,            "RLOCK_CONFIG",
   "Configuration file [/etc/rlock.conf, ~/.config/rlock.conf]", nullptr},
  {'q', "quiet",                "",                  every, "",
   "Print errors only", verbose<Verbosity::quiet>},
  {'v', "verbose",              "",                  every, "",
   "Print every step on stderr", verbose<Verbosity::verbose>},
  {'h', "help",                 "",                  every, "",
   "Show this help", nullptr},
  {'V', "version",              "",                  0, "",
   "Show the version", nullptr},
};
// clang-format on

/// The command and the process that --hold-pid starts may read the file from another directory.
std::string make_absolute(const std::string& file) {
  std::error_code error;
  const auto path = file.empty() ? std::filesystem::path{} : std::filesystem::absolute(file, error);
  return error ? file : path.string();
}

}  // namespace

std::vector<std::string_view> Option::choices() const {
  std::vector<std::string_view> out;
  std::string_view rest = value.find('|') == std::string_view::npos ? "" : value;
  while (!rest.empty()) out.push_back(take_word(rest, '|'));
  return out;
}

Value Option::resolve(Value given) const {
  if (is_file())
    given.text = make_absolute(given.text);
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

const Option* find_option(char letter, std::optional<Subcommand> subcommand) {
  const Option* found = nullptr;
  for (const Option& option : options) {
    const bool better = found == nullptr || (subcommand && option.belongs_to(*subcommand));
    if (option.letter == letter && letter != '\0' && better)
      found = &option;
  }
  return found;
}

}  // namespace rlock::cli
