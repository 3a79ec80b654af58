#include "cli/subcommand.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/value.h"

namespace rlock::cli {
namespace {

constexpr std::string_view own_lock =
    "KEY defaults to RLOCK_KEY, and --token to RLOCK_TOKEN or, for another lock, to its token in RLOCK_HELD: `rlock "
    "run` and `acquire --output shell` set all three.";

constexpr auto acquire_terms = std::to_array<Term>({
    {"--hold-pid $$",
     "No trap is needed: the lock ends with the script. In a bash subshell set p=$BASHPID first, and write $p"},
    {"|| echo exit $?",
     "Without it, a script that did not get the lock goes on all the same. `set -e` does not prevent that in a "
     "function called after `if` or before `||`, nor if rlock is not installed. Mind the quotes around $(...)"},
    {"--output shell",
     "Without it, hand the token to `rlock renew` and `release`; an `rlock run` of the same lock in the script would "
     "wait"},
    {"-E 0", "Then, without --output shell, an empty output is all that says that the lock was not acquired"},
    {"--backoff",
     "It takes effect only after a lease that ran out or was lost: rlock does not learn whether the script failed"},
});

constexpr auto status_terms = std::to_array<Term>({
    {"MODE",
     "x: held alone; r: shared; 2/3: in slot 2 of 3, counted from 0; dead: held by a process of this machine that has "
     "died; cooling: after --min-hold or --backoff; hold: by `rlock hold`; foreign: another program's key; free"},
    {"PID", "rlock's own: kill it there, and the command gets the signal"},
    {"HELD", "How long it has been held"},
    {"LEASE", "How long it stays taken if nobody renews it, or on hold; before the first renewal, a few seconds"},
    {"WAITING", "How many wait, and who is the first of them"},
    {"LAST", "How and when the previous run ended, such as ok 3h ago"},
    {"FENCE", "Number of the acquisition, for `rlock release --force --fence`"},
});

constexpr auto log_terms = std::to_array<Term>({
    {"0, 1, ...", "Exit status of the command"},
    {"SIGKILL, ...", "Signal that killed it"},
    {"timeout", "It ran for longer than --max-runtime"},
    {"interrupted", "It was told to stop, and exited with 0"},
    {"evicted by", "Somebody made it stop with `rlock release --force`"},
    {"replaced by", "A newer run with --replace made it stop"},
    {"lost",
     "The lease could not be kept, so the command was stopped (not with --on-lost warn); or a script gave it up too "
     "late"},
    {"died",
     "The lease ran out: rlock or its machine had died, Redis did not answer, or nobody released it; when is seldom "
     "known, so HELD counts until somebody noticed it"},
    {"released", "A script gave up what `rlock acquire` had taken"},
    {"ended", "The process of --hold-pid is gone, well or not, so --failed does not show it"},
    {"on hold", "Somebody put the lock on hold until then, or for that long"},
    {"hold over", "The time of the hold was up; or hold ended, or hold replaced, by somebody"},
});

constexpr auto subcommands = std::to_array<SubcommandEntry>({
    {"run",
     Subcommand::run,
     run,
     Keys::one,
     "run KEY [OPTION...] -- COMMAND [ARG...]",
     "Run a command while holding a lock",
     "  rlock run backup --once-per day --attempts 3 -w 12h -E 0 -q -- backup.sh\n"
     "  rlock run deploy -w 10m --max-runtime 30m --note \"release 42\" -- deploy.sh\n",
     "The command finds RLOCK_KEY, RLOCK_TOKEN, RLOCK_FENCE, RLOCK_TTL_MS, RLOCK_SLOT and RLOCK_HELD. RLOCK_FENCE "
     "grows with each run: storage that refuses all below the greatest that it has seen is safe from a run that has "
     "lost its lock.",
     "That of the command, or 128 + n if signal n ended it. 75, or what -E says: the lock is held, cooling or on "
     "hold, or all attempts have failed. 76: the lease was lost, or somebody evicted the run. 124: stopped by "
     "--max-runtime.",
     ""},
    {"acquire",
     Subcommand::acquire,
     acquire,
     Keys::one,
     "acquire KEY [--hold-pid PID] [--output FORMAT] [OPTION...]",
     "Take a lock and print its token",
     "  eval \"$(rlock acquire migration --hold-pid $$ --output shell || echo exit $?)\"\n"
     "  token=$(rlock acquire migration --ttl 10m -w 1m) || exit\n"
     "  rlock release migration --token \"$token\"\n"
     "To send an alert first, also under `set -e`:\n"
     "  eval \"$(rlock acquire migration --output shell || echo \"(exit $?)\")\" ||\n"
     "    { status=$?; send-alert; exit $status; }\n",
     "",
     "75, or what -E says: the lock is held, cooling or on hold.",
     "",
     "In a script",
     acquire_terms},
    {"renew",
     Subcommand::renew,
     renew,
     Keys::one,
     "renew [KEY] [--token T] [--ttl D]",
     "Extend the lease of a lock that acquire or run took",
     "  rlock renew migration --token \"$token\" --ttl 10m || exit\n",
     own_lock,
     "1: the lock is free, or somebody else has it.",
     ""},
    {"release",
     Subcommand::release,
     release,
     Keys::one,
     "release [KEY] [--token T | --force [--fence N] [OPTION...]]",
     "Give a lock up, or make its holder give it up",
     "  rlock release migration --token \"$token\"\n"
     "  rlock release backup --force --fence N --hold 1h  # `rlock status` shows N\n",
     own_lock,
     "1: the lock is free, or somebody else has it. 75: with --force, the wait of -w ran out.",
     "--force stops the command of `rlock run`, and signals the script of --hold-pid. The script of a plain `rlock "
     "acquire` hears nothing and runs on without the lock. A script that releases its lock takes it from every `rlock "
     "run` that shares it: `wait` for those first."},
    {"hold",
     Subcommand::hold,
     hold,
     Keys::several,
     "hold KEY... --end | (--for D | --until TIME) [--note TEXT]",
     "Keep new holders out of a lock for a while",
     "  rlock hold backup --until 'mon 08:00' --note 'disk swap'\n"
     "  rlock hold backup --end\n",
     "",
     "1: with --end, a lock was not on hold.",
     "A run that holds the lock goes on to its end; others wait, or exit with 75. To wait for its end, take the lock: "
     "rlock acquire KEY --first --hold-pid $$. A second hold replaces the first, "
     "its note included. KEY is a name, not a pattern. TIME "
     "is 08:00 (the next), 'tomorrow 08:00', 'mon 08:00', 2026-11-25 (at 0:00), '2026-11-25 08:00' or RFC 3339."},
    {"status",
     Subcommand::status,
     status,
     Keys::several,
     "status [KEY|GLOB...] [--all] [--json | --prometheus] [--watch]",
     "Show who holds which lock, since when, and who is waiting",
     "  rlock status backup\n"
     "  rlock status 'deploy-*'\n"
     "  rlock status --json | jq '.[].holders[].pid | values'\n",
     "NO_COLOR turns colours off.",
     "1, with keys: some are free. With `set -e`, write `|| test $? = 1`.",
     "A single KEY, on a terminal, is shown in full, with why the last one left without the lock, and with the command "
     "that breaks it. A narrow terminal has no room for all columns; a pipe shows all.",
     "Columns",
     status_terms},
    {"log",
     Subcommand::log,
     log,
     Keys::several,
     "log [KEY|GLOB...] [--failed | --timeline] [--since D] [OPTION...]",
     "Show who held which lock, for how long, and how that ended",
     "  rlock log backup --since 7d\n"
     "  rlock log --failed --since 1d\n"
     "  rlock log --timeline\n",
     "NO_COLOR turns colours off.",
     "",
     "Whoever left without the lock has no line: `rlock status KEY` says how many did, and why the last one did. A "
     "narrow terminal has no room for all columns; a pipe shows all.",
     "END",
     log_terms},
    {"check",
     Subcommand::check,
     check,
     Keys::none,
     "check [--json]",
     "Tell whether this Redis can be trusted with locks, and what to fix",
     "  rlock check --redis rediss://db1:6380\n",
     "NO_COLOR turns colours off.",
     "1: a finding is FAIL.",
     "It takes and releases a lock whose name begins with rlock-check-, to try the permissions."},
});

/// What users of other tools type.
constexpr auto aliases = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"ls", "status"},
    {"list", "status"},
    {"show", "status"},
    {"get", "status"},
    {"ps", "status"},
    {"info", "status"},
    {"who", "status"},
    {"watch", "status --watch"},
    {"metrics", "status --prometheus"},
    {"unlock", "release"},
    {"del", "release"},
    {"delete", "release"},
    {"break", "release --force"},
    {"kill", "release --force"},
    {"force", "release --force"},
    {"evict", "release --force"},
    {"pause", "hold"},
    {"freeze", "hold"},
    {"drain", "hold"},
    {"ping", "check"},
    {"doctor", "check"},
    {"unhold", "hold --end"},
    {"resume", "hold --end"},
    {"lock", "run"},
    {"exec", "run"},
    {"flock", "run"},
    {"history", "log"},
    {"version", "--version"},
});

}  // namespace

std::span<const SubcommandEntry> all_subcommands() { return subcommands; }

const SubcommandEntry* find_subcommand(std::string_view name) {
  const auto* const found = std::find_if(
      subcommands.begin(), subcommands.end(), [&](const SubcommandEntry& entry) { return entry.name == name; });
  return found == subcommands.end() ? nullptr : found;
}

bool is_subcommand_elsewhere(std::string_view word) {
  return std::any_of(aliases.begin(), aliases.end(), [word](const auto& alias) { return alias.first == word; });
}

std::string suggest_subcommand(std::string_view word) {
  for (const auto& [alias, meant] : aliases) {
    if (word == alias)
      return fmt::format("; did you mean {}?", meant);
  }
  if (word == "forget" || word == "purge")
    return "; Redis forgets a lock by itself, 30 days after its last run";
  std::vector<std::string_view> known;
  for (const SubcommandEntry& entry : subcommands) known.push_back(entry.name);
  known.emplace_back("help");
  return did_you_mean(word, known);
}

}  // namespace rlock::cli
