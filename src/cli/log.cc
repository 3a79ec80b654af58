#include <algorithm>
#include <map>

#include "base/loop.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/failure.h"
#include "cli/json.h"
#include "cli/scope.h"
#include "cli/screen.h"
#include "cli/servers.h"
#include "cli/table.h"
#include "cli/timeline.h"
#include "observe/survey.h"

namespace rlock::cli {
namespace {

using observe::History;
using observe::LockFacts;
using observe::Run;

constexpr std::size_t usual_count = 20;
constexpr std::size_t columns_in_pipe = 100;
constexpr std::chrono::hours usual_window{24};

/// How many runs of each lock to fetch: for a span of time, all that the server promises to keep. It may keep a few
/// more, which are left out.
std::size_t choose_count(const Settings& settings) {
  if (settings.lines)
    return std::min(static_cast<std::size_t>(*settings.lines), observe::kept_runs);
  return settings.timeline || settings.since ? observe::kept_runs : usual_count;
}

/// The newest runs of each lock that ended in the span asked for, in the order in which they ended.
std::vector<Run> merge_by_time(std::vector<History> histories, const Settings& settings) {
  std::vector<Run*> chosen;  // pointers, since runs are expensive to move while sorting
  for (History& history : histories) {
    const std::size_t count = std::min(choose_count(settings), history.runs.size());
    for (auto run = history.runs.end() - static_cast<std::ptrdiff_t>(count); run != history.runs.end(); ++run) {
      if (!settings.since || run->ended_at >= history.now - *settings.since)
        chosen.push_back(&*run);
    }
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const Run* a, const Run* b) { return a->ended_at < b->ended_at; });
  std::vector<Run> runs;
  runs.reserve(chosen.size());
  for (Run* run : chosen) runs.push_back(std::move(*run));
  return runs;
}

bool wants_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const auto locale = from_environment(variable))
      return locale->find("UTF-8") != std::string::npos || locale->find("utf8") != std::string::npos;
  }
  return false;
}

/// Collects the lanes of a timeline, ordered by name.
class Lanes {
 public:
  explicit Lanes(Milliseconds window) : window_(window) {}

  void add(const History& history, std::size_t asked) {
    end_ = std::max(end_, history.now);
    Lane& lane = lanes_[history.lock];
    for (const Run& run : history.runs)
      lane.blocks.push_back({.begin = run.acquired_at, .end = run.ended_at, .failed = run.ending.is_failure()});
    if (!history.runs.empty() && history.runs.size() >= asked)
      lane.known_since = history.runs.front().acquired_at;
  }

  /// Adds the current holders.
  void add(const LockFacts& facts) {
    end_ = std::max(end_, facts.now);
    for (const auto& holder : facts.holders) {
      if (!holder.cools())  // then its run is in the history
        lanes_[facts.name].blocks.push_back({.begin = holder.acquired_at, .end = facts.now});
    }
  }

  /// The lanes that are not empty within the window.
  std::vector<Lane> lanes() const {
    std::vector<Lane> all;
    for (const auto& [name, lane] : lanes_) {
      const auto is_seen = [this](const Block& block) { return block.end >= begin(); };
      if (std::any_of(lane.blocks.begin(), lane.blocks.end(), is_seen))
        all.push_back({.name = name, .blocks = lane.blocks, .known_since = lane.known_since});
    }
    return all;
  }

  WallTime begin() const { return end_ - window_; }
  WallTime end() const { return end_; }

 private:
  Milliseconds window_;
  WallTime end_;
  std::map<std::string, Lane> lanes_;
};

std::string format_timeline(const std::vector<History>& histories,
                            const std::vector<LockFacts>& now,
                            const Settings& settings) {
  Lanes lanes{settings.since.value_or(usual_window)};
  for (const History& history : histories) lanes.add(history, choose_count(settings));
  for (const LockFacts& facts : now) lanes.add(facts);
  const Screen screen = Screen::now();
  const TimelineStyle style{
      .columns = screen.columns > 0 ? screen.columns : columns_in_pipe, .utf8 = wants_utf8(), .colour = screen.colour};
  return draw_timeline(lanes.lanes(), lanes.begin(), lanes.end(), style);
}

ExitCode read_and_print(const Settings& settings) {
  const Log log{settings.verbosity};
  auto servers = choose_servers(settings, log, observe::listing_limits);
  Loop loop;
  observe::Scope scope = choose_scope(settings);
  scope.remembered = true;
  auto histories = observe::survey_histories(loop, servers, scope, choose_count(settings), settings.timeout);
  if (settings.timeline) {
    print(format_timeline(histories, observe::survey(loop, servers, scope, settings.timeout), settings));
    return ExitCode::ok;
  }
  const auto runs = merge_by_time(std::move(histories), settings);
  print(settings.json ? format_json(runs) : format_table(runs, Screen::now()));
  return ExitCode::ok;
}

}  // namespace

ExitCode log(const Settings& settings) {
  return explaining(settings, "it is not known who held it", [&] { return read_and_print(settings); });
}

}  // namespace rlock::cli
