#include "observe/merge.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace rlock::observe {
namespace {

/// The votes about one lock, one from each server.
struct Votes {
  std::map<State, std::size_t> states;
  std::map<long long, std::size_t> holders;  // by fence
  std::size_t silent = 0;
};

Votes count(const std::vector<ServerView>& views, std::size_t index) {
  Votes votes;
  for (const ServerView& view : views) {
    if (!view.facts) {
      ++votes.silent;
      continue;
    }
    const LockFacts& facts = (*view.facts)[index];
    ++votes.states[facts.state];
    for (const HolderFacts& holder : facts.holders) ++votes.holders[holder.fence.value];
  }
  return votes;
}

State decide(const Votes& votes, std::size_t majority) {
  const auto free = votes.states.find(State::free);
  if (free != votes.states.end() && free->second >= majority)
    return State::free;
  State state = State::free;
  std::size_t most = 0;
  for (const auto& [candidate, voters] : votes.states) {
    if (candidate != State::free && voters > most) {
      state = candidate;
      most = voters;
    }
  }
  return state;
}

/// The most informative view: one with the decided state, the most holders and the latest run.
const LockFacts* best_view(const std::vector<ServerView>& views, std::size_t index, State state) {
  const auto rank = [state](const LockFacts& facts) {
    const WallTime last = facts.last ? facts.last->acquired_at : WallTime{};
    return std::tuple{facts.state == state, facts.holders.size(), last};
  };
  const LockFacts* best = nullptr;
  for (const ServerView& view : views) {
    if (view.facts && (best == nullptr || rank((*view.facts)[index]) > rank(*best)))
      best = &(*view.facts)[index];
  }
  return best;
}

/// A server may have missed some of what it counts, and must not make a total fall.
Counters most_counted(const std::vector<ServerView>& views, std::size_t index) {
  Counters most;
  for (const ServerView& view : views) {
    if (!view.facts)
      continue;
    const Counters& counters = (*view.facts)[index].counters;
    most = {.acquired = std::max(most.acquired, counters.acquired),
            .waited = std::max(most.waited, counters.waited),
            .forced = std::max(most.forced, counters.forced),
            .lost = std::max(most.lost, counters.lost)};
  }
  return most;
}

/// A waiter queues at every server that it can reach, so the longest queue counts.
long long most_waiting(const std::vector<ServerView>& views, std::size_t index) {
  long long most = 0;
  for (const ServerView& view : views) {
    if (view.facts)
      most = std::max(most, (*view.facts)[index].waiting);
  }
  return most;
}

LockFacts merge_one(const std::vector<ServerView>& views, std::size_t index) {
  const std::size_t majority = views.size() / 2 + 1;
  const Votes votes = count(views, index);
  const State state = decide(votes, majority);
  LockFacts merged = *best_view(views, index, state);
  merged.state = state;
  merged.waiting = most_waiting(views, index);
  merged.counters = most_counted(views, index);
  if (state != State::foreign)
    merged.foreign.reset();
  std::erase_if(merged.holders, [&](const HolderFacts& holder) {
    return votes.holders.at(holder.fence.value) + votes.silent < majority;
  });
  if (state == State::free) {
    merged.capacity.reset();
    merged.holders.clear();
  }
  for (const ServerView& view : views) {
    merged.servers.push_back({.url = view.url, .state = {}});
    if (view.facts)
      merged.servers.back().state = (*view.facts)[index].state;
  }
  return merged;
}

}  // namespace

std::vector<LockFacts> merge(const std::vector<ServerView>& views, std::size_t count) {
  std::vector<LockFacts> all;
  for (std::size_t index = 0; index < count; ++index) all.push_back(merge_one(views, index));
  return all;
}

}  // namespace rlock::observe
