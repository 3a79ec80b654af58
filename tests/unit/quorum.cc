
#include "lock/quorum.h"

#include <vector>

#include "expect.h"

namespace rlock::unit {
namespace {

using lock::Ballot;
using lock::CallResult;

CallResult says(const std::vector<std::string>& words) {
  redis::Reply reply{.kind = redis::Reply::Kind::array, .text = {}, .integer = 0, .elements = {}};
  for (const std::string& word : words)
    reply.elements.push_back({.kind = redis::Reply::Kind::text, .text = word, .integer = 0, .elements = {}});
  redis::Address address;
  address.url = "redis://a";
  return lock::Fields{address, reply};
}

const CallResult yes = says({"granted"});
const CallResult no = says({"busy"});
const CallResult young = says({"young", "1500"});
const CallResult silent;
const CallResult down = Error{ExitCode::unavailable, "down"};
const CallResult denied = Error{ExitCode::no_permission, "denied"};

Ballot count(const std::vector<CallResult>& answers) {
  return {answers, [](const lock::Fields& fields) { return fields.outcome() == "granted"; }};
}

std::string failure_of(const Ballot& ballot) { return ballot.failure().what(); }

void test_one() {
  expect(count({yes}).passed() && !count({yes}).rejected(), "one server's yes is a yes");
  expect(count({no}).rejected() && !count({no}).passed(), "one server's no is a no");
  expect(!count({young}).passed() && !count({young}).is_quorate(), "a young server alone does not decide");
  expect_same(failure_of(count({down})), "down", "the failure of a single server is reported as it is");
}

void test_majorities() {
  expect(count({yes, yes, silent}).passed(), "two of three pass");
  expect(!count({yes, no, silent}).passed() && !count({yes, no, silent}).rejected(),
         "a vote of one to one is undecided");
  expect(count({yes, no, silent}).is_quorate(), "two of three voters are a majority");
  expect(count({no, no, silent}).rejected(), "two of three reject");
  expect(!count({yes, yes, silent, silent}).passed(), "half of the servers are not a majority");
  expect(!count({yes, yes, silent, silent}).is_quorate(), "two of four voters are not a majority");
  expect(count({no, no, yes, yes}).rejected(), "a vote that cannot win any more is rejected");
  expect(count({yes, yes, yes, no, down}).passed(), "three of five pass");
  expect(!count({no, no, yes, yes, silent}).rejected(), "the last one of five decides");
}

void test_no_vote() {
  expect(!count({yes, young, young}).passed(), "a young server has no vote in favour");
  expect(!count({no, young, young}).rejected(), "a young server has no vote against");
  expect(!count({yes, young, down}).is_quorate(), "a young server does not count as a voter");
}

void test_failures() {
  const auto failure = count({yes, young, down}).failure();
  expect(failure.code() == ExitCode::unavailable && failure.may_pass(), "a failure that may pass is tried again");
  const std::string what = failure.what();
  expect(what.find("1 of 3 servers may vote, 2 are needed") != what.npos, "the failure tells how many voted", what);
  expect(what.find("redis://a: up for 1.5s; down") != what.npos,
         "the failure tells what each of the other servers said",
         what);
  expect(count({yes, denied, down}).failure().may_pass(), "one server that fails for good may be outvoted");
  const auto lasting = count({yes, denied, denied}).failure();
  expect(lasting.code() == ExitCode::no_permission && !lasting.may_pass(),
         "a majority that fails for good is not asked again");
}

void test_nonsense() {
  const auto now = BootClock::now();
  constexpr Milliseconds ttl{30'000};
  const CallResult grant = says({"granted", "42", "0", "30000"});
  std::vector<CallResult> answers{says({"granted", "x"}), grant, grant, says({"young"})};
  const std::vector<lock::Answer> votes = lock::read_votes(answers, now, ttl);
  expect(std::holds_alternative<Error>(answers[0]), "an answer that makes no sense is a failure of its server");
  expect_same(lock::sum_up_grants(votes, now).fence.value, 42, "and spoils no grant");
  std::vector<CallResult> grants{grant, says({"granted", "42", "0", "4000"}), says({"granted", "42", "0", "5000"})};
  const auto unconfirmed = lock::sum_up_grants(lock::read_votes(grants, now, ttl), now).unconfirmed;
  expect(unconfirmed == Milliseconds{4'000}, "a grant lasts as long as the shortest lease that a server gave");
  expect(failure_of(count({says({"young"}), yes, no})).find("unexpected answer") != std::string::npos,
         "a server that is too young, and does not say how young, has failed");
  expect(!lock::missing_at(says({"extended"})), "one that does not say what it lacks gets nothing back");
  expect_same(lock::largest_used_fence(std::vector{says({"used"}), says({"used", "7"})}).value, 7, "used");
  const auto losses = lock::sum_up_losses(std::vector{says({"evicted"}), says({"evicted", "forced", "root"})});
  expect(std::holds_alternative<lock::Evicted>(losses), "the reason of a loss is the first that can be read");
  expect(std::holds_alternative<lock::Lost>(lock::sum_up_losses(std::vector{says({"evicted"})})),
         "a loss without a reason is a loss");
}

void test_refusals() {
  const auto now = BootClock::now();
  constexpr Milliseconds ttl{30'000};
  const auto sum_up = [&](std::vector<CallResult> answers) {
    return lock::sum_up_refusals(lock::read_votes(answers, now, ttl), 2).value();
  };
  const auto by = [](const std::string& who) { return says({"superseded", who + " host user 17 command note"}); };
  const auto busy = [](const std::string& who) {
    return says({"busy", "9", "", "1", "2", "0", who + " host user 17 command note", "1000", "1", "0", "0"});
  };
  const CallResult grant = says({"granted", "42", "0", "30000"});
  const auto is_tied = [&](std::vector<CallResult> answers) {
    return std::get<lock::Busy>(sum_up(std::move(answers))).tied;
  };
  const auto is_newer_somewhere_only = [&](std::vector<CallResult> answers) {
    return std::get<lock::Superseded>(sum_up(std::move(answers))).tied;
  };
  const auto is_full_somewhere_only = [&](std::vector<CallResult> answers) {
    return std::get<lock::Full>(sum_up(std::move(answers))).tied;
  };
  const CallResult full = says({"full", "1"});
  expect(!is_newer_somewhere_only({by("a"), by("a"), by("b")}), "a waiter that is newer at a majority supersedes");
  expect(is_newer_somewhere_only({by("a"), by("b"), by("c")}), "a waiter that is newer at one server does not");
  expect(!is_full_somewhere_only({full, full, full}), "a queue that is full everywhere is full");
  expect(is_full_somewhere_only({full, full, busy("a")}), "one that has room at a server is not");
  expect(is_full_somewhere_only({busy("a"), full}), "a place at a minority of the servers is no seat");
  expect(!is_tied({busy("a"), busy("a"), full}), "a place at a majority is one");
  expect(is_tied({grant, busy("a"), busy("b")}), "three takers that have a server each are tied");
  expect(!is_tied({grant, busy("a"), busy("a")}), "a holder that one server has forgotten holds");
  expect(!is_tied({busy("c"), busy("a"), busy("b")}), "whoever was granted nothing leaves it to the others");
}

void test_done() {
  const auto now = BootClock::now();
  constexpr Milliseconds ttl{30'000};
  const auto done = says({"done", "500", "600", "1000", "owner host user 17 command note", "v42"});
  const auto busy = [](const std::string& ago) {
    return says({"busy", "9", "", "1", "2", "0", "a host user 17 command note", "1000", "1", "0", "0", ago, "id"});
  };
  const auto grant = [](const std::string& ago) { return says({"granted", "42", "0", "30000", ago, "id"}); };
  const auto counts = [&](std::vector<CallResult> answers) {
    std::vector<lock::Answer> votes = lock::read_votes(answers, now, ttl);
    const bool taken = lock::take_done(votes, false, 2).has_value();
    expect_same(votes.size(), taken ? answers.size() : answers.size() - 1, "a success that is outdated has no vote");
    return taken;
  };
  std::vector<CallResult> both{done, says({"done", "700", "800", "1000", "b host user 17 command note", "v42"}), done};
  std::vector<lock::Answer> both_votes = lock::read_votes(both, now, ttl);
  const auto newest = lock::take_done(both_votes, false, 3);
  expect(newest && std::get<lock::Done>(*newest).by.holder == "b", "of several successes the latest is told");
  expect(counts({done, grant("-1"), grant("501")}), "a success that one server remembers counts");
  expect(!counts({done, grant("-1"), grant("499")}), "unless a server that is free knows of a later one");
  expect(!counts({done, busy("499")}), "or one where the lock is held");
  std::vector<CallResult> outvoting{done, done, grant("1")};
  std::vector<lock::Answer> votes_of_most = lock::read_votes(outvoting, now, ttl);
  expect(lock::take_done(votes_of_most, false, 2).has_value(), "what a majority says counts, or all wait for ever");
  std::vector<CallResult> with_later{done, grant("1"), grant("1")};
  std::vector<lock::Answer> votes_on_slot = lock::read_votes(with_later, now, ttl);
  expect(lock::take_done(votes_on_slot, true, 2).has_value(), "a slot is done, whatever was done after it");
  std::vector<CallResult> alone{done, grant("499"), says({"young", "1"})};
  std::vector<lock::Answer> votes = lock::read_votes(alone, now, ttl);
  (void)lock::take_done(votes, false, 2);
  expect(!lock::sum_up_refusals(votes, 2), "and then nothing refuses");
}

void test_failed() {
  const auto cooling = [](const std::string& held, const std::string& success) {
    return says(
        {"busy", "9", "", held, "0", "500", "a host user 17 command note 1,3", "1000", "0", "0", "0", success, "id"});
  };
  const auto grant = [](const std::string& ago) { return says({"granted", "42", "0", "30000", ago, "id"}); };
  const auto votes_of = [](std::vector<CallResult> answers) {
    return lock::read_votes(answers, BootClock::now(), Milliseconds{30'000});
  };
  std::vector<lock::Answer> votes = votes_of({cooling("700", "-1"), grant("-1"), grant("701")});
  expect(lock::take_failed(votes, 2).has_value(), "a failure that one server remembers counts");
  votes = votes_of({cooling("700", "-1"), grant("699"), grant("-1")});
  expect(!lock::take_failed(votes, 2), "unless another knows of a success that was granted later");
  expect_same(lock::sum_up_grants(votes, BootClock::now()).fence.value, 42, "which then is granted");
  votes = votes_of({cooling("700", "600"), cooling("700", "600"), cooling("700", "600")});
  expect(!lock::take_failed(votes, 2), "a reader that was granted later may have succeeded before");
  expect(lock::sum_up_refusals(votes, 2).has_value(), "a lock that cools at a majority is waited for all the same");
  const auto exhausted = says({"attempts", "1", "3", "500", "600", "1000", "host", "id"});
  votes = votes_of({exhausted, grant("400"), grant("400")});
  expect(!lock::take_failed(votes, 2), "attempts that one server remembers do not count after a later success");
  votes = votes_of({exhausted, exhausted, grant("400")});
  expect(lock::take_failed(votes, 2).has_value(), "those that a majority remembers do, or all wait for ever");
  const auto died = says({"attempts", "1", "died", "500", "600", "1000", "host", "id"});
  votes = votes_of({died, grant("-1"), grant("-1")});
  expect(!lock::take_failed(votes, 2), "a death of which a majority does not know is none");
  expect(!lock::sum_up_refusals(votes, 2), "and refuses nobody");
  votes = votes_of({died, grant("-1")});
  expect(lock::take_failed(votes, 2).has_value(), "one that no majority disputes counts");
  votes = votes_of({died, died, grant("-1")});
  expect(lock::take_failed(votes, 2).has_value(), "one that most have seen counts");
}

}  // namespace

void test_ballots() {
  test_failed();
  test_done();
  test_nonsense();
  test_refusals();
  test_one();
  test_majorities();
  test_no_vote();
  test_failures();
}

}  // namespace rlock::unit
