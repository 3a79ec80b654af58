#include "observe/history.h"

#include "expect.h"
#include "observe/facts.h"

namespace rlock::unit {
namespace {

using observe::Ending;

lock::Fields answer(std::vector<std::string> texts) {
  redis::Reply reply;
  reply.kind = redis::Reply::Kind::array;
  for (std::string& text : texts) {
    redis::Reply& element = reply.elements.emplace_back();
    element.kind = redis::Reply::Kind::text;
    element.text = std::move(text);
  }
  return {redis::parse_address("redis://h"), std::move(reply)};
}

const lock::LockName name{"rlock:", "job"};

void test_endings() {
  expect_same(Ending::read("0").describe(), "0", "a status is shown as it is");
  expect_same(Ending::read("signal:9").describe(), "SIGKILL", "a signal is shown by its name");
  expect_same(
      Ending::read("evicted,a%40b%20pid%207").describe(), "evicted by a@b pid 7", "an eviction names who did it");
  expect_same(Ending::read("evicted,%zz").describe(),
              "evicted by ?",
              "a word that cannot be decoded is shown as a question mark");
  expect_same(Ending::read("-").describe(), "released", "an end without a status is a release");
  for (const char* text : {"", "256", "-1", "exited", "signalled", "99999999999999999999", "nonsense"})
    expect(Ending::read(text).kind == Ending::Kind::unknown, "what no version writes is unknown", text);
  for (const char* text : {"1", "255", "signal:15", "evicted,a", "replaced,a", "lost", "died", "timeout"})
    expect(Ending::read(text).is_failure(), "anything but 0 and a release is a failure", text);
  for (const char* text : {"0", "released", "-"}) expect(!Ending::read(text).is_failure(), "these are none", text);
}

void test_histories() {
  const auto history = observe::read_history(
      name,
      answer({"history", "5000", "7 1000 2500 10 1 3 a@b b a 12 ls%20-l note", "garbage", "9 3000 3500 0 0 died a@b"}));
  expect_same(history.runs.size(), 2UL, "a line that cannot be read is left out");
  expect_same(history.runs[0].held().count(), 1500, "a run held the lock from its grant to its end");
  expect_same(history.runs[0].owner.command, "ls -l", "a run's owner is decoded");
  expect(history.runs[1].capacity == lock::shared, "a reader's mode is 0");
  const auto elsewhere = observe::read_history(
      name, answer({"history", "5001", "9 3000 3400 0 0 0 a@b b a 12 x -", "11 4000 4100 0 1 0 a@b b a 12 x -"}));
  const auto merged = observe::merge_histories({history, elsewhere}, 100);
  expect_same(merged.runs.size(), 3UL, "runs are told apart by their fences");
  expect_same(merged.runs[1].ending.describe(), "0", "an end that one server knows outranks a death");
  expect_same(observe::merge_histories({history, elsewhere}, 1).runs[0].fence.value, 11, "the newest runs are kept");
  const auto held_back = observe::read_history(
      name,
      answer({"history", "9000", "hold a 3600 8000 8000 - - a@b b a 12 x -", "7 1000 2500 10 1 3 a@b b a 12 x -"}));
  expect_same(observe::merge_histories({held_back, elsewhere}, 3).runs.size(),
              5UL,
              "the beginning and the end of a hold do not count as runs");
  expect_failure(
      [] {
        return observe::read_history(name, answer({"held", "1"}));
      },
      ExitCode::unavailable,
      "another script's answer is refused");
}

void test_facts() {
  const std::string extreme = "9223372036854775807";
  for (const std::string& number : {extreme, std::string{"-9223372036854775808"}, std::string{"9007199254740992"}}) {
    const std::string six = fmt::format("{0} {0} {0} {0} {0} {0} a h u 1 c n born={0}", number);
    const auto facts = observe::read_facts(name,
                                           answer({"held",
                                                   number,
                                                   number,
                                                   "acquired " + number,
                                                   "waited " + number,
                                                   "capacity " + number,
                                                   "holder " + six,
                                                   "waiter " + six,
                                                   "last " + six}));
    expect(facts.holders[0].held.count() >= 0 && facts.holders[0].lease.count() >= 0, "no number overflows", number);
  }
  const auto facts = observe::read_facts(
      name,
      answer({"held",
              "5000",
              "0",
              "capacity 3",
              "holder 6000 0 8 2 1000 1 a@h h u 12 c n ttl=30000 born=700 kept=1 evict=forced,b%20pid%203",
              "acquired 3",
              "waited 2",
              "last 7 300 900 died z@h h u 2 c n",
              "lost 4"}));
  expect(facts.holders[0].has_keeper && facts.holders[0].evicted->by == "b pid 3", "the extras of a record are read");
  expect_same(facts.holders[0].waited.count(), 300, "a holder waited from when it was born until it was granted");
  expect_same(facts.counters.acquired, 5, "those that waited for the lock took it too");
  expect_same(facts.counters.waited, 2, "and are counted on their own");
  expect_same(facts.last->ending.describe(), "died", "a run that died is the last run");
  expect_same(facts.counters.lost, 4, "a counter is read");
  const auto cooling = observe::read_facts(name,
                                           answer({"cooling",
                                                   "5000",
                                                   "0",
                                                   "capacity 2",
                                                   "holder 4000 9000 8 0 1000 1 a@h h u 12 c n",
                                                   "holder 4500 7000 9 1 2000 1 a@h h u 13 c n"}));
  expect_same(cooling.cooling.count(), 4000, "a lock cools as long as the slot that cools longest");
  expect_same(cooling.holders[0].held.count(), 3000, "while a slot cools, it was held until its run ended");
  const WallTime now{std::chrono::hours{50}};
  expect_same(observe::format_ago(WallTime{std::chrono::hours{1}}, now), "2d ago", "days ago are told without hours");
}

}  // namespace

void test_observations() {
  test_endings();
  test_histories();
  test_facts();
}

}  // namespace rlock::unit
