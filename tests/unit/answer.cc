#include "lock/answer.h"

#include "expect.h"

namespace rlock::unit {
namespace {

using lock::Asked;
using lock::read_hand_over;

long long ms_after(BootClock::time_point start, BootClock::time_point end) {
  return std::chrono::duration_cast<Milliseconds>(end - start).count();
}

void test_credit() {
  const Asked asked{.sent = BootClock::now() - std::chrono::minutes{1}, .answered = "1700000000000"};
  const auto granted = read_hand_over("granted 42 3 1000 1700000000000 2000", asked);
  expect(granted.has_value(), "a lock that is handed over is taken");
  if (!granted)
    return;
  expect_same(granted->fence.value, std::uint64_t{42}, "its fence");
  expect_same(granted->slot, 3, "its slot");
  expect(granted->unconfirmed == Milliseconds{1000}, "its lease");
  expect_same(ms_after(asked.sent, granted->sent), 1978LL, "it counts from our question, less 1 % and 2 ms");
}

/// The server's clock was set forward meanwhile.
void test_never_in_the_future() {
  const Asked asked{.sent = BootClock::now(), .answered = "1700000000000"};
  const auto granted = read_hand_over("granted 42 0 1000 1700000000000 50000", asked);
  expect(granted && granted->sent <= BootClock::now(), "no lease begins later than now");
}

void test_refused() {
  const Asked asked{.sent = BootClock::now(), .answered = "1700000000000"};
  for (const char* message : {"",
                              "0",
                              "1500",
                              "granted",
                              "granted 42 0 1000 1700000000001 5",  // after another question
                              "granted 42 0 1000 1700000000000",
                              "granted 42 0 1000 1700000000000 x",
                              "granted 42 0 1000 1700000000000 -5",
                              "granted 42 0 100000000 1700000000000 5",
                              "granted 42 -1 1000 1700000000000 5",
                              "granted 99999999999999999999999 0 1000 1700000000000 5"})
    expect(!read_hand_over(message, asked), "not a lock handed over", message);
}

}  // namespace

void test_answers() {
  test_credit();
  test_never_in_the_future();
  test_refused();
}

}  // namespace rlock::unit
