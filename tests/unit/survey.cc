#include "observe/survey.h"

#include <vector>

#include "expect.h"

namespace rlock::unit {
namespace {

using observe::LockFacts;
using observe::ServerView;
using observe::State;

LockFacts in_state(State state) {
  LockFacts facts;
  facts.state = state;
  return facts;
}

LockFacts held_by(long long fence, Milliseconds lease = {}) {
  LockFacts facts = in_state(State::held);
  facts.holders.emplace_back();
  facts.holders.back().fence = {fence};
  facts.holders.back().lease = lease;
  facts.capacity = lock::exclusive;
  return facts;
}

const ServerView silent{.url = "redis://silent", .facts = {}};

ServerView view(const LockFacts& facts) { return {.url = "redis://a", .facts = std::vector{facts}}; }

LockFacts merge(const std::vector<ServerView>& views) { return observe::merge(views, 1).at(0); }

const LockFacts nobody = in_state(State::free);

void test_free() {
  expect(merge({view(nobody), view(nobody), view(held_by(7))}).state == State::free,
         "a lock is free if a majority says so");
  expect(merge({view(nobody), view(nobody), view(held_by(7))}).holders.empty(),
         "a holder that only one server knows does not hold");
  expect(merge({view(nobody), view(held_by(7)), view(held_by(7))}).state == State::held,
         "a lock is not free because one server says so");
  expect(merge({view(nobody), silent, silent}).state == State::free, "a lock is free if no server says otherwise");
}

void test_held() {
  const LockFacts some = merge({view(held_by(7)), view(held_by(7)), view(nobody)});
  expect_same(some.holders.size(), 1U, "a holder that a majority knows is shown once");
  expect_same(some.holders.at(0).fence.value, 7, "a holder has its fence");
  const LockFacts doubtful = merge({view(held_by(7)), view(nobody), silent});
  expect(doubtful.state == State::held && doubtful.holders.size() == 1, "a silent server might know the holder too");
  const LockFacts split = merge({view(held_by(7)), view(held_by(8)), view(held_by(9))});
  expect(split.state == State::held && split.holders.empty(),
         "after three failed rounds the lock is taken, but nobody holds it");
}

/// Of a holder that two of three servers have renewed.
void test_lease() {
  const auto renewed = view(held_by(7, Milliseconds{30'000}));
  const auto old = view(held_by(7, Milliseconds{9'000}));
  const auto lease = [](const std::vector<ServerView>& views) { return merge(views).holders.at(0).lease.count(); };
  expect_same(lease({old, renewed, renewed}), 30'000, "a lease is what a majority has, though one server missed it");
  expect_same(lease({renewed, old, old}), 9'000, "a lease that one server alone has renewed ends with the others'");
  expect_same(lease({silent, renewed, old}), 30'000, "a silent server may keep the lease");
}

void test_failing() {
  const auto failing = [](long long count) {
    LockFacts facts = nobody;
    facts.counters.failing = count;
    return view(facts);
  };
  expect_same(merge({failing(3), failing(0), failing(0)}).counters.failing,
              0,
              "a server that has missed a success does not count failures for all");
  expect_same(merge({failing(3), failing(2), failing(3)}).counters.failing, 3, "one that has missed a failure neither");
}

void test_counters() {
  LockFacts one = nobody;
  LockFacts other = nobody;
  one.counters = {.acquired = 9, .waited = 2, .evicted = 1, .lost = 0};
  other.counters = {.acquired = 7, .waited = 3, .evicted = 0, .lost = 4};
  const auto counters = merge({view(one), view(other), silent}).counters;
  expect(counters.acquired == 9 && counters.waited == 3 && counters.evicted == 1 && counters.lost == 4,
         "each total is that of the server that has counted most");
  one.counters.last_skip = observe::Skip{.at = WallTime{Milliseconds{1000}}, .reason = "held", .holder = "ann"};
  other.counters.last_skip = observe::Skip{.at = WallTime{Milliseconds{2000}}, .reason = "held", .holder = "bob"};
  for (const auto& views : {std::vector{view(one), view(other)}, std::vector{view(other), view(one)}})
    expect_same(
        merge(views).counters.last_skip->holder, "bob", "the last skip is that of the server that knows a later");
}

/// One server has the run with that fence, and takes the end for this.
LockFacts ended(long long fence, observe::Ending::Kind end, WallTime success = {}) {
  LockFacts facts = nobody;
  facts.last = observe::Run{.fence = {fence}};
  facts.last->ending.kind = end;
  facts.success = facts.last;
  facts.success->acquired_at = success;
  return facts;
}

void test_last() {
  using Kind = observe::Ending::Kind;
  const auto last = [](const LockFacts& one, const LockFacts& other) {
    return *merge({view(one), view(other), silent}).last;
  };
  const LockFacts died = ended(7, Kind::died);
  const LockFacts exited = ended(7, Kind::exited);
  expect(last(died, exited).ending.kind == Kind::exited && last(exited, died).ending.kind == Kind::exited,
         "a run has not died if one server knows how it ended");
  expect(last(exited, ended(8, Kind::died)).ending.kind == Kind::died, "a newer run is the last, though it died");
  const WallTime early{Milliseconds{1000}};
  const WallTime late{Milliseconds{2000}};
  const LockFacts facts = merge({view(ended(9, Kind::died, early)), view(ended(8, Kind::exited, late))});
  expect(facts.last->fence.value == 9 && facts.success->acquired_at == late,
         "the last success is that of the server that knows a later");
}

void test_servers() {
  const LockFacts facts = merge({view(nobody), silent, view(held_by(7))});
  expect_same(facts.servers.size(), 3U, "every server is listed");
  expect(facts.servers.at(0).state == State::free, "a server that answered is listed with its state");
  expect(facts.servers.at(1).url == "redis://silent" && !facts.servers.at(1).state,
         "a silent server is listed without a state");
}

void test_hold() {
  LockFacts held_back = nobody;
  held_back.hold.emplace();
  expect(!merge({view(held_back), view(nobody), view(nobody)}).hold, "a hold that only one server knows is none");
  expect(merge({view(held_back), silent, view(nobody)}).hold.has_value(), "a silent server might know the hold too");
}

void test_foreign() {
  LockFacts theirs = in_state(State::foreign);
  theirs.foreign.emplace();
  expect(merge({view(theirs), view(theirs), view(nobody)}).foreign.has_value(), "another program's key is shown");
  expect(!merge({view(theirs), view(nobody), view(nobody)}).foreign.has_value(),
         "another program's key that a minority has is not shown");
}

}  // namespace

void test_merges() {
  test_free();
  test_held();
  test_lease();
  test_counters();
  test_failing();
  test_last();
  test_servers();
  test_hold();
  test_foreign();
}

}  // namespace rlock::unit
