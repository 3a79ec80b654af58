#include "cli/options.h"

#include <fmt/format.h>

#include "base/signals.h"

namespace rlock::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr unsigned run_only = static_cast<unsigned>(Subcommand::run);
constexpr unsigned acquire_only = static_cast<unsigned>(Subcommand::acquire);
constexpr unsigned renew_only = static_cast<unsigned>(Subcommand::renew);
constexpr unsigned release_only = static_cast<unsigned>(Subcommand::release);
constexpr unsigned status_only = static_cast<unsigned>(Subcommand::status);
constexpr unsigned check_only = static_cast<unsigned>(Subcommand::check);
constexpr unsigned takers = run_only | acquire_only;
constexpr unsigned single_key = takers | renew_only | release_only;
constexpr unsigned every = single_key | status_only | check_only;

constexpr milliseconds shortest_ttl{500};
constexpr hours longest_ttl{7 * 24};

void add_redis(Settings& s, const Value& v) {
  try {
    s.redis.push_back(redis::parse_address(v.text));
  } catch (const Error& error) {
    throw Error{v.fault, fmt::format("{}: {}", v.origin, error.what())};
  }
}

void set_token(Settings& s, const Value& v) {
  s.token = lock::Token::parse(v.text);
  if (!s.token)
    v.refuse("not a token: 32 hexadecimal digits, as acquire prints it");  // not shown: it is a secret
}

void set_replicas(Settings& s, const Value& v) {
  const auto colon = v.text.find(':');
  const Value count{.text = v.text.substr(0, colon), .origin = v.origin, .fault = v.fault};
  lock::Replicas replicas{.count = static_cast<int>(count.number(1, 1000))};
  if (colon != std::string::npos) {
    const Value limit{.text = v.text.substr(colon + 1), .origin = v.origin, .fault = v.fault};
    replicas.limit = limit.duration(milliseconds{1}, seconds{60});
  }
  s.replicas = replicas;
}

void set_signal(Settings& s, const Value& v) {
  const auto number = parse_signal(v.text);
  if (!number)
    v.refuse(fmt::format("no such signal: '{}'", v.text));
  s.first_signal = *number;
}

void set_on_lost(Settings& s, const Value& v) {
  if (v.text != "kill" && v.text != "warn")
    v.refuse("write kill or warn");
  s.on_lost = v.text == "kill" ? run::OnLost::kill : run::OnLost::warn;
}

void set_at_end(Settings& s, const Value& v) {
  if (v.text == "leave") {
    s.at_end = run::AtEnd::leave;
  } else if (v.text == "wait") {
    s.at_end = run::AtEnd::wait;
  } else if (v.text == "kill") {
    s.at_end = run::AtEnd::kill;
  } else {
    v.refuse("write leave, wait or kill");
  }
}

void set_output(Settings& s, const Value& v) {
  if (v.text == "token") {
    s.output = Output::token;
  } else if (v.text == "shell") {
    s.output = Output::shell;
  } else if (v.text == "json") {
    s.output = Output::json;
  } else {
    v.refuse("write token, shell or json");
  }
}

constexpr Option options[] = {
    {"-k,--key",
     "K",
     single_key | status_only,
     "",
     "Name of the lock",
     [](Settings& s, const Value& v) { s.keys = {v.text}; }},
    {"-t,--ttl",
     "D",
     takers | renew_only,
     "",
     "Lease: the lock is free after at most this if the holder's machine dies [30s]",
     [](Settings& s, const Value& v) { s.ttl = v.duration(shortest_ttl, longest_ttl); }},
    {"-n,--nonblock",
     "",
     takers,
     "",
     "Fail at once if the lock is held",
     [](Settings& s, const Value& v) { s.nonblock = v.flag(); }},
    {"-w,--wait",
     "D",
     takers,
     "",
     "Give up after D [wait for ever]",
     [](Settings& s, const Value& v) { s.wait = v.duration(); }},
    {"-E,--conflict-exit-code",
     "N",
     takers,
     "",
     "Exit status when the lock was not acquired [75]",
     [](Settings& s, const Value& v) { s.conflict = ExitCode{static_cast<int>(v.number(0, 255))}; }},
    {"-x,--exclusive",
     "",
     takers,
     "",
     "Hold it alone: a writer (the default)",
     [](Settings& s, const Value& v) { s.exclusive = v.flag(); }},
    {"-s,--shared",
     "",
     takers,
     "",
     "Share it with other readers",
     [](Settings& s, const Value& v) { s.shared = v.flag(); }},
    {"--slots",
     "N",
     takers,
     "",
     "At most N holders at a time [1]",
     [](Settings& s, const Value& v) { s.slots = static_cast<int>(v.number(1, 100'000)); }},
    {"--min-hold",
     "D",
     takers,
     "",
     "The lock stays taken until D after it was acquired [0]",
     [](Settings& s, const Value& v) { s.min_hold = v.duration(milliseconds{0}, longest_ttl); }},
    {"--replicas", "N[:D]", takers, "", "Not acquired unless N replicas have it within D [1s]", set_replicas},
    {"--holder",
     "NAME",
     takers,
     "",
     "Who holds it, for status [user@host]",
     [](Settings& s, const Value& v) { s.holder = v.words(); }},
    {"--note", "TEXT", takers, "", "Why, for status", [](Settings& s, const Value& v) { s.note = v.words(); }},

    {"--renew-every",
     "D",
     run_only,
     "",
     "Time between renewals [a third of --ttl]",
     [](Settings& s, const Value& v) { s.renew_every = v.duration(milliseconds{10}, longest_ttl); }},
    {"--kill-after",
     "D",
     run_only,
     "",
     "Time between the first signal and KILL [5s or a quarter of --ttl]",
     [](Settings& s, const Value& v) { s.kill_after = v.duration(milliseconds{0}, longest_ttl); }},
    {"--signal",
     "SIG",
     takers,
     "",
     "First signal to a command, or the PID held for, that must stop [TERM]",
     set_signal},
    {"--on-lost", "kill|warn", run_only, "", "What to do when the lease can no longer be kept [kill]", set_on_lost},
    {"--at-end",
     "leave|wait|kill",
     run_only,
     "",
     "What of the processes that a command leaves behind [leave]",
     set_at_end},
    {"--max-runtime",
     "D",
     run_only,
     "",
     "Stop the command D after its start; exit 124",
     [](Settings& s, const Value& v) { s.max_runtime = v.duration(milliseconds{1}, hours{24 * 3650}); }},

    {"--report",
     "FILE",
     run_only,
     "",
     "Say how it ended: a JSON object, written when run ends",
     [](Settings& s, const Value& v) { s.report = v.words(); }},

    {"--output", "token|shell|json", acquire_only, "", "What to print [token]", set_output},
    {"--hold-pid",
     "PID",
     acquire_only,
     "",
     "Renew in the background until process PID ends, then release",
     [](Settings& s, const Value& v) { s.hold_pid = static_cast<int>(v.number(1, 4'194'304)); }},
    {"--token", "T", renew_only | release_only, "", "The token that acquire printed [RLOCK_TOKEN]", set_token},
    {"--force",
     "",
     release_only,
     "",
     "Break the lock whoever holds it",
     [](Settings& s, const Value& v) { s.force = v.flag(); }},
    {"--fence",
     "N",
     release_only,
     "",
     "With --force: only if that acquisition still holds it",
     [](Settings& s, const Value& v) { s.fence = {static_cast<std::uint64_t>(v.number(1, 1LL << 53))}; }},
    {"--json",
     "",
     status_only | check_only,
     "",
     "JSON on one line instead of a table",
     [](Settings& s, const Value& v) { s.json = v.flag(); }},
    {"--watch",
     "",
     status_only,
     "",
     "Show it again each second, until interrupted",
     [](Settings& s, const Value& v) { s.watch = v.flag(); }},

    {"-r,--redis", "URL", every, "RLOCK_REDIS", "Which Redis [redis://127.0.0.1:6379/0]", add_redis},
    {"--username",
     "NAME",
     every,
     "RLOCK_USERNAME",
     "User to authenticate as",
     [](Settings& s, const Value& v) { s.username = v.words(); }},
    {"--password-file",
     "FILE",
     every,
     "RLOCK_PASSWORD_FILE",
     "File whose first line is the password",
     [](Settings& s, const Value& v) { s.password_file = v.words(); }},
    {"--cacert",
     "FILE",
     every,
     "RLOCK_CACERT",
     "CA for rediss://: a file or a hashed directory [the system's]",
     [](Settings& s, const Value& v) { s.tls.ca = v.words(); }},
    {"--cert",
     "FILE",
     every,
     "RLOCK_CERT",
     "Our certificate for rediss://",
     [](Settings& s, const Value& v) { s.tls.certificate = v.words(); }},
    {"--tls-key",
     "FILE",
     every,
     "RLOCK_TLS_KEY",
     "Its key [in the same file]",
     [](Settings& s, const Value& v) { s.tls.key = v.words(); }},
    {"--tls-server-name",
     "NAME",
     every,
     "RLOCK_TLS_SERVER_NAME",
     "Name in the server's certificate [the host]",
     [](Settings& s, const Value& v) { s.tls.server_name = v.words(); }},
    {"--insecure",
     "",
     every,
     "RLOCK_INSECURE",
     "Do not verify the server's certificate",
     [](Settings& s, const Value& v) { s.tls.insecure = v.flag(); }},
    {"--prefix",
     "P",
     every,
     "RLOCK_PREFIX",
     "Put before every key name [rlock:]",
     [](Settings& s, const Value& v) { s.prefix = v.words(); }},
    {"--timeout",
     "D",
     every,
     "RLOCK_TIMEOUT",
     "Longest wait for one answer of one server [2s]",
     [](Settings& s, const Value& v) {
       s.timeout = v.duration(milliseconds{1}, seconds{60}, "; it is for one answer: see --max-runtime and --wait");
     }},
    {"--max-lease",
     "D",
     every,
     "RLOCK_MAX_LEASE",
     "Several --redis: the longest lease anybody uses with them [60s]",
     [](Settings& s, const Value& v) { s.max_lease = v.duration(shortest_ttl, longest_ttl); }},
    {"--config",
     "FILE",
     every,
     "RLOCK_CONFIG",
     "Configuration file [/etc/rlock.conf, then ~/.config/rlock.conf]",
     [](Settings& s, const Value& v) { s.config = v.words(); }},
    {"-q,--quiet",
     "",
     every,
     "",
     "Errors only",
     [](Settings& s, const Value& v) {
       if (v.flag())
         s.verbosity = Verbosity::quiet;
     }},
    {"-v,--verbose",
     "",
     every,
     "",
     "Every step on stderr",
     [](Settings& s, const Value& v) {
       if (v.flag())
         s.verbosity = Verbosity::verbose;
     }},
};

}  // namespace

std::span<const Option> all_options() { return options; }

}  // namespace rlock::cli
