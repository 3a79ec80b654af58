#include "observe/merge.h"

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

LockFacts held_by(std::uint64_t fence) {
  LockFacts facts = in_state(State::held);
  facts.holders.emplace_back();
  facts.holders.back().fence = {fence};
  facts.capacity = lock::exclusive;
  return facts;
}

const ServerView silent{.url = "redis://silent", .facts = {}};

ServerView view(const LockFacts& facts) { return {.url = "redis://a", .facts = std::vector{facts}}; }

LockFacts merge(const std::vector<ServerView>& views) { return observe::merge(views, 1).at(0); }

const LockFacts nobody = in_state(State::free);

void test_free() {
  expect(merge({view(nobody), view(nobody), view(held_by(7))}).state == State::free, "free is what a majority says");
  expect(merge({view(nobody), view(nobody), view(held_by(7))}).holders.empty(), "whom one server knows does not hold");
  expect(merge({view(nobody), view(held_by(7)), view(held_by(7))}).state == State::held, "one server does not say so");
  expect(merge({view(nobody), silent, silent}).state == State::free, "where nobody says otherwise");
}

void test_held() {
  const LockFacts some = merge({view(held_by(7)), view(held_by(7)), view(nobody)});
  expect_same(some.holders.size(), 1U, "whom a majority knows holds, and is shown once");
  expect_same(some.holders.at(0).fence.value, std::uint64_t{7}, "with its fence");
  const LockFacts doubtful = merge({view(held_by(7)), view(nobody), silent});
  expect(doubtful.state == State::held && doubtful.holders.size() == 1, "the silent one might know it too");
  const LockFacts split = merge({view(held_by(7)), view(held_by(8)), view(held_by(9))});
  expect(split.state == State::held && split.holders.empty(), "three rounds that fail: taken, and by nobody");
}

void test_servers() {
  const LockFacts facts = merge({view(nobody), silent, view(held_by(7))});
  expect_same(facts.servers.size(), 3U, "every server is told");
  expect(facts.servers.at(0).state == State::free, "with its state");
  expect(facts.servers.at(1).url == "redis://silent" && !facts.servers.at(1).state, "or that it was silent");
}

void test_foreign() {
  LockFacts theirs = in_state(State::foreign);
  theirs.foreign.emplace();
  expect(merge({view(theirs), view(theirs), view(nobody)}).foreign.has_value(), "another program's key is shown");
  expect(!merge({view(theirs), view(nobody), view(nobody)}).foreign.has_value(), "unless a majority is free of it");
}

}  // namespace

void test_merges() {
  test_free();
  test_held();
  test_servers();
  test_foreign();
}

}  // namespace rlock::unit
