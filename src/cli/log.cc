#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/duration.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/timestamp.h"
#include "base/word.h"
#include "cli/claim.h"
#include "cli/failure.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/screen.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
#include "cli/table.h"
#include "cli/timeline.h"
#include "observe/survey.h"

namespace rlock::cli {
namespace {

using observe::History;
using observe::LockFacts;
using observe::Run;

using namespace std::chrono_literals;

constexpr std::size_t usual_count = 20;
constexpr std::size_t columns_in_pipe = 100;
constexpr std::chrono::hours usual_window{24};

/// How many runs of each lock to ask for: of a span of time, all that the server keeps.
std::size_t choose_count(const Settings& settings) {
  if (settings.lines)
    return std::min(static_cast<std::size_t>(*settings.lines), observe::kept_runs);
  return settings.timeline || settings.since ? observe::kept_runs : usual_count;
}

/// How many of them to fetch: those that failed may be among the oldest, and --follow must know what is not new.
std::size_t choose_fetched(const Settings& settings) {
  const bool are_all_needed = settings.follow || (settings.failed && settings.lines != 0);
  return are_all_needed ? observe::kept_runs : choose_count(settings);
}

void keep_failed(std::vector<History>& histories) {
  for (History& history : histories)
    std::erase_if(history.runs, [](const Run& run) { return !run.ending.needs_attention(); });
}

/// The beginning of the span asked for, by the server's clock.
WallTime begin_of(const Since& since, WallTime now) {
  const auto* const time = std::get_if<WallTime>(&since);
  return time != nullptr ? *time : now - std::get<Milliseconds>(since);
}

bool began_before(const Run& a, const Run& b) { return a.acquired_at < b.acquired_at; }

/// The newest lines of each lock, with those of holds, or all that ended in the span asked for, in the order in which
/// they began, as shown.
std::vector<Run> merge_by_time(std::vector<History> histories, const Settings& settings) {
  std::vector<Run*> chosen;  // pointers, since runs are expensive to move while sorting
  for (History& history : histories) {
    const std::size_t known = history.runs.size();
    const std::size_t count = settings.since && !settings.lines ? known : std::min(choose_count(settings), known);
    for (auto run = history.runs.end() - static_cast<std::ptrdiff_t>(count); run != history.runs.end(); ++run) {
      if (!settings.since || run->ended_at >= begin_of(*settings.since, history.now))
        chosen.push_back(&*run);
    }
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const Run* a, const Run* b) { return began_before(*a, *b); });
  std::vector<Run> runs;
  runs.reserve(chosen.size());
  for (Run* run : chosen) runs.push_back(std::move(*run));
  return runs;
}

/// Collects the lanes of a timeline, ordered by name.
class Lanes {
 public:
  explicit Lanes(const Since& since) : since_(since) {}

  void add(const History& history, std::size_t asked) {
    end_ = std::max(end_, history.now);
    std::vector<Bar>& bars = lanes_[history.lock];
    std::size_t runs = 0;
    const auto oldest =
        std::find_if(history.runs.begin(), history.runs.end(), [](const Run& run) { return run.ending.is_of_run(); });
    for (const Run& run : history.runs) {
      if (!run.ending.is_of_run()) {
        add_hold(run, history.now, bars);
        continue;
      }
      add_run(run, bars);
      if (++runs == asked)
        bars.push_back({.begin = {}, .end = oldest->acquired_at, .kind = Bar::Kind::unknown});
    }
  }

  /// Adds the current holders.
  void add(const LockFacts& facts) {
    end_ = std::max(end_, facts.now);
    for (const auto& holder : facts.holders) {
      if (holder.holds())  // otherwise its run is in the history
        lanes_[facts.name].push_back({.begin = holder.acquired_at, .end = facts.now});
    }
  }

  /// The lanes that are not empty within the window.
  std::vector<Lane> lanes() const {
    std::vector<Lane> all;
    for (const auto& [name, bars] : lanes_) {
      const auto is_seen = [this](const Bar& bar) { return bar.end >= begin(); };
      if (std::any_of(bars.begin(), bars.end(), is_seen))
        all.push_back({.name = name, .bars = bars});
    }
    return all;
  }

  WallTime begin() const { return begin_of(since_, end()); }
  /// The server's time, or ours where there is no lock that would tell it.
  WallTime end() const { return end_ == WallTime{} ? wall_now() : end_; }

 private:
  /// Where it is not known when a run ended, no more is known than that it held the lock at first.
  static void add_run(const Run& run, std::vector<Bar>& bars) {
    Bar bar{.begin = run.acquired_at, .end = run.ended_at, .failed = run.ending.needs_attention()};
    if (!run.is_end_known()) {
      bars.push_back({.begin = bar.begin, .end = bar.begin});
      bar.kind = Bar::Kind::unknown;
    }
    bars.push_back(bar);
  }

  /// A hold's beginning makes a block, which is cut off where it has ended sooner.
  static void add_hold(const Run& moment, WallTime now, std::vector<Bar>& bars) {
    if (moment.hold_until && moment.ending.kind == observe::Ending::Kind::hold) {
      bars.push_back(
          {.begin = moment.acquired_at, .end = std::min(*moment.hold_until, now), .kind = Bar::Kind::on_hold});
      return;
    }
    const auto open =
        std::find_if(bars.rbegin(), bars.rend(), [](const Bar& bar) { return bar.kind == Bar::Kind::on_hold; });
    if (open != bars.rend())
      open->end = std::min(open->end, moment.acquired_at);
  }

  Since since_;
  WallTime end_{};
  std::map<std::string, std::vector<Bar>> lanes_;
};

Lanes lanes_of(const std::vector<History>& histories, const std::vector<LockFacts>& now, const Settings& settings) {
  Lanes lanes{settings.since.value_or(Since{Milliseconds{usual_window}})};
  for (const History& history : histories) lanes.add(history, choose_count(settings));
  for (const LockFacts& facts : now) lanes.add(facts);
  return lanes;
}

/// How to see more of a day of which only the last columns are not empty; empty where there is more.
std::string advise_on_window(const Lanes& lanes) {
  const std::vector<Lane> drawn = lanes.lanes();
  if (drawn.empty())
    return "";
  WallTime first = lanes.end();
  for (const Lane& lane : drawn) {
    for (const Bar& bar : lane.bars) {
      if (bar.end >= lanes.begin())
        first = std::min(first, bar.begin);
    }
  }
  const Milliseconds age = lanes.end() - first;
  for (const std::chrono::minutes window : {5min, 20min, 60min, 180min}) {
    if (age < window)
      return fmt::format("all that is drawn happened in the last {0}; --since {0} draws it larger",
                         format_limit(window));
  }
  return "";
}

/// Shows each run as it ends, until a signal ends us. A server that fails later on may come back, and then tells what
/// has ended meanwhile.
class Follower {
 public:
  /// Whatever is in these histories is shown first or not at all.
  Follower(std::vector<redis::Server>& servers,
           const observe::Scope& scope,
           const Settings& settings,
           const Log& log,
           const std::vector<History>& known)
      : servers_(servers), scope_(scope), settings_(settings), log_(log) {
    for (const History& history : known) {
      for (const Run& run : history.runs) seen_.insert(identity_of(run));
    }
  }

  /// Shows these runs first, or says why there are none, and what comes next.
  [[noreturn]] void follow(const std::vector<Run>& first, const std::string& why) {
    const bool is_silent = first.empty();
    show(first);
    if (!why.empty())
      log_.notice(why);
    if (is_silent)
      log_.notice(fmt::format("waiting for a run to {}", settings_.failed ? "fail" : "end"));
    for (;;) {
      servers_.front().loop().wait_out(BootClock::now() + period);
      auto histories = look_again();
      std::vector<Run> runs;
      for (History& history : histories) std::move(history.runs.begin(), history.runs.end(), std::back_inserter(runs));
      std::erase_if(runs, [this](const Run& run) { return !seen_.insert(identity_of(run)).second; });
      std::stable_sort(runs.begin(), runs.end(), began_before);
      show(runs);
    }
  }

 private:
  static constexpr std::chrono::seconds period{1};
  static constexpr std::size_t most_remembered = 1000;

  using Identity = std::pair<std::string, long long>;
  static Identity identity_of(const Run& run) { return {run.lock, run.fence.value}; }

  void show(const std::vector<Run>& runs) {
    if (runs.empty())
      return;
    if (settings_.json) {
      cli::show(format_json(runs));
      return;
    }
    const std::size_t before = shown_.size();
    shown_.insert(shown_.end(), runs.begin(), runs.end());
    std::string_view text = table_ = format_table(shown_, Screen::now());  // all of them, so that the columns stay
    for (std::size_t i = begun_ ? before + 1 : 0; i > 0; --i) take_word(text, '\n');
    cli::show(text);
    begun_ = true;
    if (shown_.size() > most_remembered)
      shown_.erase(shown_.begin(), shown_.end() - static_cast<std::ptrdiff_t>(most_remembered));
  }

  /// Says once that the servers do not answer, or refuse a password that is just being changed, and then nothing until
  /// they have answered.
  std::vector<History> look_again() {
    try {
      auto histories = observe::survey_histories(servers_, scope_, observe::kept_runs, settings_.timeout);
      if (settings_.failed)
        keep_failed(histories);
      failing_ = false;
      return histories;
    } catch (const Error& error) {
      if (!may_be_mended(error))
        throw;
      if (!std::exchange(failing_, true))
        log_.notice(fmt::format("{}; trying again", error.what()));
      return {};
    }
  }

  std::vector<redis::Server>& servers_;
  const observe::Scope& scope_;
  const Settings& settings_;
  const Log& log_;
  std::set<Identity> seen_;
  std::vector<Run> shown_;
  std::string table_;
  bool begun_ = false;
  bool failing_ = false;
};

bool are_empty(const std::vector<History>& histories) {
  return std::all_of(histories.begin(), histories.end(), [](const History& history) { return history.runs.empty(); });
}

/// "root@db1 has held it since 2026-11-25 03:17:00, and 2 more", where a lock is held.
std::optional<std::string> describe_holders(const LockFacts& lock) {
  const auto holds = std::mem_fn(&observe::HolderFacts::holds);
  const auto first = std::find_if(lock.holders.begin(), lock.holders.end(), holds);
  if (first == lock.holders.end())
    return std::nullopt;
  const auto others = std::count_if(first + 1, lock.holders.end(), holds);
  return fmt::format("{} has held it since {}{}{}",
                     first->owner.holder,
                     format_local(first->acquired_at),
                     first->dead ? ", but has died" : "",
                     others == 0 ? "" : fmt::format(", and {} more", others));
}

/// What was meant by `log 5` or `log --failed 1d`, if that is no lock.
std::string advise_on_number(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (is_digits(key))
      return fmt::format("; for the last {0} runs write -n {0}", key);
    if (parse_duration(key))
      return fmt::format("; for the last {0} write --since {0}", key);
  }
  return "";
}

/// Why nothing is known of the locks that were named, or of any: the first run of one may still go on.
std::string explain_unknown(const std::vector<LockFacts>& locks, const Settings& settings) {
  for (const LockFacts& lock : locks) {
    if (const auto holder = describe_holders(lock))
      return fmt::format("no run of {} has ended yet; {}", lock.name, *holder);
  }
  if (settings.keys.empty())
    return fmt::format("no run is known to have ended under the prefix '{}'", settings.prefix);
  return fmt::format("no run of {} is known to have ended; check its name{}",
                     fmt::join(settings.keys, ", "),
                     advise_on_number(settings.keys));
}

/// Whoever asks for the runs of one lock wants to know of the one that goes on too. Only a remark: it may fail.
std::string describe_current(std::vector<redis::Server>& servers,
                             const observe::Scope& scope,
                             const Settings& settings) {
  if (settings.keys.size() != 1 || is_pattern(settings, settings.keys.front()))
    return "";
  try {
    const auto locks = observe::survey(servers, scope, settings.timeout);
    const auto holders = locks.empty() ? std::nullopt : describe_holders(locks.front());
    return holders ? fmt::format("{}: {}", locks.front().name, *holders) : "";
  } catch (const Error&) {
    return "";
  }
}

/// Why runs that are known are not shown; empty where there is nothing to say.
std::string explain_choice(const Settings& settings) {
  const std::string_view what = settings.failed ? "failed" : "ended";
  if (settings.since)
    return fmt::format("no run has {} since {}", what, format_local(begin_of(*settings.since, wall_now())));
  return settings.failed ? "no run is known to have failed" : "";
}

void draw_timeline(const std::vector<History>& histories,
                   const std::vector<LockFacts>& now,
                   const Settings& settings,
                   const Log& log) {
  const Lanes lanes = lanes_of(histories, now, settings);
  Screen screen = Screen::now();
  if (screen.columns == 0)
    screen.columns = columns_in_pipe;
  show(cli::draw_timeline(lanes.lanes(), lanes.begin(), lanes.end(), screen));
  const bool is_unknown = are_empty(histories) && std::all_of(now.begin(), now.end(), observe::is_unheard_of);
  std::string remark;
  if (is_unknown)
    remark = explain_unknown(now, settings);
  else if (screen.is_terminal && !settings.since)
    remark = advise_on_window(lanes);
  if (!remark.empty())
    log.notice(remark);
}

void list_runs(std::vector<History> histories,
               std::vector<redis::Server>& servers,
               const observe::Scope& scope,
               const Settings& settings,
               const Log& log) {
  const bool is_known = !are_empty(histories);
  if (settings.failed)
    keep_failed(histories);
  std::optional<Follower> follower;
  if (settings.follow)
    follower.emplace(servers, scope, settings, log, histories);
  auto runs = merge_by_time(std::move(histories), settings);
  const bool tells_why = runs.empty() && settings.lines != 0 && (!settings.json || settings.follow);
  std::string why = !tells_why ? ""
                    : is_known ? explain_choice(settings)
                               : explain_unknown(observe::survey(servers, scope, settings.timeout), settings);
  if (follower)
    follower->follow(runs, why);
  const Screen screen = Screen::now();
  show(settings.json ? format_json(runs) : format_table(runs, screen));
  if (!runs.empty() && screen.is_terminal && !settings.json && settings.verbosity != Verbosity::quiet)
    why = describe_current(servers, scope, settings);
  if (!why.empty())
    log.notice(why);
}

ExitCode read_and_print(const Settings& settings) {
  const Log log{settings.verbosity};
  Loop loop;
  auto servers = choose_servers(loop, settings, log, observe::listing_limits);
  observe::Scope scope = choose_scope(settings);
  scope.remembered = true;
  auto histories = observe::survey_histories(servers, scope, choose_fetched(settings), settings.timeout);
  warn_of_replica(servers, settings, log);
  if (settings.timeline)
    draw_timeline(histories, observe::survey(servers, scope, settings.timeout), settings, log);
  else
    list_runs(std::move(histories), servers, scope, settings, log);
  return ExitCode::ok;
}

}  // namespace

ExitCode log(const Settings& settings) {
  return explaining(
      settings, settings.keys.empty() ? "" : "it is not known who held it", [&] { return read_and_print(settings); });
}

}  // namespace rlock::cli
