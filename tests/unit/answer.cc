#include "lock/answer.h"

#include "base/sha1.h"
#include "expect.h"
#include "lock/retry.h"

namespace rlock::unit {
namespace {

using lock::Asked;
using lock::read_hand_over;

long long ms_after(BootClock::time_point start, BootClock::time_point end) {
  return std::chrono::duration_cast<Milliseconds>(end - start).count();
}

const lock::Token token = *lock::Token::parse("000102030405060708090a0b0c0d0e0f");

std::string proof_of(const std::string& fence) { return sha1_hex(token.text() + ":" + fence); }

void test_sha1() {
  expect_same(sha1_hex(""), std::string{"da39a3ee5e6b4b0d3255bfef95601890afd80709"}, "the SHA1 of an empty text");
  expect_same(sha1_hex("abc"), std::string{"a9993e364706816aba3e25717850c26c9cd0d89d"}, "the SHA1 of three letters");
  expect_same(sha1_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              std::string{"84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
              "the SHA1 of a text that needs a second block for its length");
}

void test_targets() {
  expect(lock::read_target("5 held 9007199254740992 1 h h u 1 c n").lease < Milliseconds{1LL << 43},
         "the lease of a target is so short that a time can be reckoned with it");
}

void test_credit() {
  const Asked asked{.sent = BootClock::now() - std::chrono::minutes{1}, .answered = "1700000000000"};
  const auto granted = read_hand_over("granted 42 3 1000 1700000000000 2000 " + proof_of("42"), asked, token);
  expect(granted.has_value(), "a lock that is handed over is taken");
  if (!granted)
    return;
  expect_same(granted->fence.value, 42, "a hand-over has its fence");
  expect_same(granted->slot, 3, "a hand-over has its slot");
  expect(granted->unconfirmed == Milliseconds{1000}, "a hand-over has its lease");
  expect_same(ms_after(asked.sent, granted->sent), 1978LL, "its lease counts from our question, less 1 % and 2 ms");
}

void test_refused() {
  const Asked asked{.sent = BootClock::now() - std::chrono::seconds{1}, .answered = "1700000000000"};
  const std::string proof = proof_of("42");
  expect(read_hand_over("granted 42 0 1000 1700000000000 5 " + proof, asked, token).has_value(),
         "a hand-over with every word right is believed");
  for (const std::string& message :
       {std::string{""},
        std::string{"0"},
        std::string{"1500"},
        std::string{"granted"},
        "granted 42 0 1000 1700000000001 5 " + proof,  // after another question
        "granted 42 0 1000 1700000000000 " + proof,
        "granted 42 0 1000 1700000000000 x " + proof,
        "granted 42 0 1000 1700000000000 -5 " + proof,
        "granted 42 0 5001 1700000000000 5 " + proof,  // longer than any such lease
        "granted 42 -1 1000 1700000000000 5 " + proof,
        "granted 42 0 1000 1700000000000 90000 " + proof,  // from the future
        std::string{"granted 42 0 1000 1700000000000 5"},
        "granted 43 0 1000 1700000000000 5 " + proof,
        "granted 99999999999999999999999 0 1000 1700000000000 5 " + proof_of("99999999999999999999999")})
    expect(!read_hand_over(message, asked, token), "not a lock handed over", message);
}

lock::Answer read(const std::vector<std::string>& words) {
  redis::Reply reply{.kind = redis::Reply::Kind::array, .text = {}, .integer = 0, .elements = {}};
  for (const std::string& word : words)
    reply.elements.push_back({.kind = redis::Reply::Kind::text, .text = word, .integer = 0, .elements = {}});
  return lock::read_answer({redis::Address{}, reply}, BootClock::now(), Milliseconds{30'000});
}

void test_absurd_numbers() {
  constexpr Milliseconds century{100LL * 365 * 86'400'000};
  for (const std::string& ms : std::vector<std::string>{"-1", "-2", "-9007199254740992", "9007199254740992"}) {
    const auto busy = std::get<lock::Busy>(read({"busy", ms, "7", ms, ms, ms, "a", "1700000000000", "1", "0", "0"}));
    expect(busy.sleep <= Milliseconds{60'000}, "nobody sleeps for longer than a minute, whatever a server says", ms);
    for (const Milliseconds time : {busy.sleep, busy.held, busy.lease, busy.cooling})
      expect(time >= Milliseconds{0} && time <= 2 * century, "a time is cut to what can be reckoned with", ms);
    expect(lock::jitter(busy.sleep / 2, busy.sleep) <= busy.sleep, "and a random part of it can be slept", ms);
    const auto foreign = std::get<lock::Foreign>(read({"foreign", ms, "7", "string", "x", ms, "1700000000000", "0"}));
    expect(foreign.sleep >= Milliseconds{0} && foreign.expires_in.has_value() == (ms[0] != '-'),
           "a key of another program that never expires stays one",
           ms);
  }
  for (const std::string& number :
       std::vector<std::string>{"-9007199254740993", "-9223372036854775808", "9007199254740993"})
    expect_failure([&] { return read({"full", number}); }, ExitCode::unavailable, "not a number of ours", number);
}

void expect_refused(const std::vector<std::string>& words) {
  expect_failure([&] { return read(words); }, ExitCode::unavailable, "not a grant", words[1] + " " + words[2]);
}

void test_grants() {
  const auto granted = std::get<lock::Granted>(read({"granted", "4398046511104000", "3", "5000"}));
  expect(granted.fence == lock::Fence{4'398'046'511'104'000} && granted.slot == 3, "a grant has its fence and slot");
  expect_refused({"granted", "4398046511104001", "0", "5000"});  // of the year 2109
  for (const std::string& number : std::vector<std::string>{"-1", "-5", "-9007199254740992", "9007199254740991", "x"}) {
    expect_refused({"granted", number, "0", "5000"});
    expect_refused({"granted", "42", number, "5000"});
  }
  expect_refused({"granted", "42", "4294967296", "5000"});  // which is slot 0 if it is cut to 32 bits
}

void test_told_sleeps() {
  expect_same(lock::read_sleep("1500").count(), 1500, "a message says how long to sleep");
  for (const std::string& message :
       std::vector<std::string>{"-1", "-9223372036854775808", "60001", "evicted", "", "12x"})
    expect_same(lock::read_sleep(message).count(), 0, "any other message means to ask at once");
}

}  // namespace

void test_answers() {
  test_absurd_numbers();
  test_grants();
  test_told_sleeps();
  test_sha1();
  test_targets();
  test_credit();
  test_refused();
}

}  // namespace rlock::unit
