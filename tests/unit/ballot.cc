#include "lock/ballot.h"

#include <vector>

#include "expect.h"
#include "lock/quorum.h"

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
  expect(failure_of(count({says({"young"}), yes, no})).find("unexpected answer") != std::string::npos,
         "a server that is too young, and does not say how young, has failed");
  expect(!lock::missing_at(says({"extended"})), "one that does not say what it lacks gets nothing back");
  expect_same(lock::largest_used_fence(std::vector{says({"used"}), says({"used", "7"})}).value, 7, "used");
  const auto losses = lock::sum_up_losses(std::vector{says({"evicted"}), says({"evicted", "forced", "root"})});
  expect(std::holds_alternative<lock::Evicted>(losses), "the reason of a loss is the first that can be read");
  expect(std::holds_alternative<lock::Lost>(lock::sum_up_losses(std::vector{says({"evicted"})})),
         "a loss without a reason is a loss");
}

}  // namespace

void test_ballots() {
  test_nonsense();
  test_one();
  test_majorities();
  test_no_vote();
  test_failures();
}

}  // namespace rlock::unit
