#include "observe/history.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "observe/word_reader.h"

namespace rlock::observe {
namespace {

std::optional<Run> read_run(std::string lock, std::string_view line) {
  WordReader words{line};
  Run run{.lock = std::move(lock)};
  const auto fence = words.number();
  const auto acquired = words.number();
  const auto ended = words.number();
  if (!fence || !acquired || !ended)
    return std::nullopt;
  run.fence = {*fence};
  run.acquired_at = WallTime{Milliseconds{*acquired}};
  run.ended_at = WallTime{Milliseconds{*ended}};
  run.waited = words.duration();
  run.capacity = {words.count()};
  run.ending = Ending::read(words.word());
  run.owner = words.owner();
  return run;
}

bool ended_before(const Run& a, const Run& b) {
  return std::pair{a.ended_at, a.fence.value} < std::pair{b.ended_at, b.fence.value};
}

}  // namespace

History read_history(const lock::LockName& name, lock::Fields fields) {
  if (fields.outcome() != "history")
    fields.unexpected();
  History history{.lock = name.text(), .now = WordReader{fields.text()}.time(), .runs = {}};
  while (!fields.at_end()) {
    if (auto run = read_run(name.text(), fields.text()))
      history.runs.push_back(*std::move(run));
  }
  if (!std::is_sorted(history.runs.begin(), history.runs.end(), ended_before))  // as they mostly are
    std::stable_sort(history.runs.begin(), history.runs.end(), ended_before);
  return history;
}

History merge_histories(const std::vector<History>& histories, std::size_t count) {
  History merged;
  std::map<long long, Run> runs;
  for (const History& history : histories) {
    merged.lock = history.lock;
    merged.now = std::max(merged.now, history.now);
    for (const Run& run : history.runs) {
      const auto [known, is_new] = runs.emplace(run.fence.value, run);
      if (!is_new && known->second.ending.kind == Ending::Kind::died)
        known->second = run;
    }
  }
  for (auto& [fence, run] : runs) merged.runs.push_back(std::move(run));
  std::sort(merged.runs.begin(), merged.runs.end(), ended_before);
  if (merged.runs.size() > count)
    merged.runs.erase(merged.runs.begin(), merged.runs.end() - static_cast<std::ptrdiff_t>(count));
  return merged;
}

lock::Request history_request(const lock::LockName& name, std::size_t count) {
  return lock::script_request(lock::scripts::log, {.keys = name.keys(), .values = {std::to_string(count)}});
}

}  // namespace rlock::observe
