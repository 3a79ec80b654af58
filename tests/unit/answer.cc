#include "lock/answer.h"

#include "base/sha1.h"
#include "expect.h"

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

void test_credit() {
  const Asked asked{.sent = BootClock::now() - std::chrono::minutes{1}, .answered = "1700000000000"};
  const auto granted = read_hand_over("granted 42 3 1000 1700000000000 2000 " + proof_of("42"), asked, token);
  expect(granted.has_value(), "a lock that is handed over is taken");
  if (!granted)
    return;
  expect_same(granted->fence.value, std::uint64_t{42}, "a hand-over has its fence");
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

}  // namespace

void test_answers() {
  test_sha1();
  test_credit();
  test_refused();
}

}  // namespace rlock::unit
