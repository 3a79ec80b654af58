#include "observe/history.h"

#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/escape.h"

namespace rlock::observe {
namespace {

constexpr std::size_t most_runs = 10'000;  // many more than Redis keeps, with all who have just died

std::optional<Run> read_run(std::string lock, std::string_view line) {
  lock::WordReader words{line};
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

/// The servers of a quorum know a hold by the same ID.
lock::Fence fence_of(std::string_view id, bool is_end) {
  constexpr std::size_t digits = 12;  // of 16: 48 bits
  long long number = 0;
  std::from_chars(id.data(), id.data() + std::min(id.size(), digits), number, 16);
  return {-2 * std::max(0LL, number) - (is_end ? 2 : 1)};
}

/// Adds the beginning of a hold, also to `holds`, and its end if it has ended. Nothing for a line that cannot be read.
void add_hold(lock::WordReader words, History& history, std::set<lock::Fence>& holds) {
  const std::string id{words.word()};
  const WallTime begun = words.time();
  const WallTime until = words.time();
  const WallTime ended = words.time();
  const lock::Fence successor = fence_of(words.word(), false);  // if it was another hold that has ended it
  const std::string ender = percent_decode(words.word()).value_or("?");
  Run begin{.lock = history.lock, .fence = fence_of(id, false), .acquired_at = begun, .ended_at = begun};
  begin.ending = {.kind = Ending::Kind::hold};
  begin.hold_until = until;
  begin.owner = words.owner();
  if (begun == WallTime{} || until == WallTime{})
    return;
  Run end = begin;
  end.fence = fence_of(id, true);
  end.acquired_at = end.ended_at = ended == WallTime{} ? until : ended;
  end.ending.kind = ended == WallTime{} ? Ending::Kind::hold_over : Ending::Kind::hold_ended;
  if (ended != WallTime{})
    end.ending.by = ender;
  if (ended != WallTime{} && holds.contains(successor))  // the newer ones come first
    end.ending.kind = Ending::Kind::hold_replaced;
  holds.insert(begin.fence);
  history.runs.push_back(std::move(begin));
  if (end.ended_at <= history.now)
    history.runs.push_back(std::move(end));
}

/// A hold that replaces another begins when that ends.
bool ended_before(const Run& a, const Run& b) {
  const auto rank = [](const Run& run) {
    return std::tuple{run.ended_at, run.ending.kind == Ending::Kind::hold, run.fence.value};
  };
  return rank(a) < rank(b);
}

}  // namespace

History read_history(const lock::LockName& name, lock::Fields fields) {
  if (fields.outcome() != "history")
    fields.unexpected();
  History history{.lock = name.text(), .now = lock::WordReader{fields.text()}.time()};
  std::set<lock::Fence> holds;
  while (!fields.at_end() && history.runs.size() < most_runs) {
    const std::string line = fields.text();
    constexpr std::string_view hold = "hold ";
    if (line.starts_with(hold))
      add_hold(lock::WordReader{std::string_view{line}.substr(hold.size())}, history, holds);
    else if (auto run = read_run(name.text(), line))
      history.runs.push_back(*std::move(run));
  }
  if (!std::is_sorted(history.runs.begin(), history.runs.end(), ended_before))  // they usually are
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
  auto first = merged.runs.end();  // of the newest `count` runs, with the holds among them
  for (std::size_t left = count; left > 0 && first != merged.runs.begin();) {
    --first;
    if (first->ending.is_of_run())
      --left;
  }
  merged.runs.erase(merged.runs.begin(), first);
  return merged;
}

}  // namespace rlock::observe
