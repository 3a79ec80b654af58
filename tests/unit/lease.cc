#include "lock/lease.h"

#include "expect.h"

namespace rlock::unit {
namespace {

using lock::Lease;
using lock::plan_lease;

struct Line {
  long long ttl, term, kill;  // ms
};

/// The times of TERM and KILL in the manual's table: with default options, after the request was sent.
constexpr Line table[] = {{1'000, 638, 888}, {3'000, 1'968, 2'718}, {10'000, 6'898, 9'398}, {30'000, 23'198, 28'198}};

lock::LeaseTerms plan(long long ttl) { return plan_lease({.ttl = Milliseconds{ttl}}); }

long long ms_after(BootClock::time_point start, Deadline deadline) {
  return std::chrono::duration_cast<Milliseconds>(deadline - start).count();
}

void test_table() {
  const BootClock::time_point sent{std::chrono::hours{1}};
  for (const Line& line : table) {
    const Lease lease{plan(line.ttl), sent};
    expect_same(ms_after(sent, lease.term_at()), line.term, "the first signal goes out when the table says");
    expect_same(ms_after(sent, lease.kill_at()), line.kill, "KILL goes out when the table says");
    expect_same(ms_after(sent, lease.renew_at()), line.ttl / 3, "a renewal is due after a third of the lease");
    expect_same(
        ms_after(sent, lease.end()), line.ttl - line.ttl / 100 - 2, "our lease ends 1 % and 2 ms before the server's");
  }
}

/// Whatever the length, all that must happen before the end has its time, in this order.
void test_order() {
  for (long long ttl = 500; ttl < 700'000; ttl += 1 + ttl / 50) {
    const auto terms = plan(ttl);
    const Lease lease{terms, BootClock::time_point{}};
    const bool ordered = lease.renew_at() + 2 * terms.attempt <= lease.term_at() && lease.term_at() < lease.kill_at() &&
                         lease.kill_at() < lease.end() && lease.end() < BootClock::time_point{Milliseconds{ttl}};
    expect(ordered, "two attempts come before TERM, TERM before KILL, KILL before the end", std::to_string(ttl));
  }
}

/// TERM and KILL come within the short lease of a grant that has not been renewed yet.
void test_unconfirmed() {
  const BootClock::time_point sent{std::chrono::hours{1}};
  Lease lease{plan(30'000), sent, Milliseconds{1'000}};
  expect_same(ms_after(sent, lease.renew_at()), 100LL, "a short lease is renewed soon");
  expect_same(ms_after(sent, lease.kill_at()), 888LL, "KILL comes within a short lease");
  expect_same(ms_after(sent, lease.term_at()), 638LL, "TERM comes before KILL in a short lease");
  expect_same(ms_after(sent, lease.usable_until()), 500LL, "half of a short lease is kept for confirming it");
  lease.extended(sent);
  expect_same(ms_after(sent, lease.kill_at()), 28'198LL, "a renewal makes a short lease a full one");
  expect_same(ms_after(sent, Lease(plan(500), sent, Milliseconds{1'000}).end()),
              493LL,
              "a short lease is never longer than was asked for");
  const auto hasty = plan_lease({.ttl = Milliseconds{30'000}, .kill_after = Milliseconds{100}});
  const Lease short_lease{hasty, sent, Milliseconds{1'000}};
  expect(short_lease.kill_at() - short_lease.term_at() == Milliseconds{100},
         "KILL follows TERM no later within a short lease than within a full one");
}

}  // namespace

void test_leases() {
  test_table();
  test_order();
  Lease lease{plan(30'000), BootClock::time_point{}};
  const auto before = lease.end();
  lease.extended(BootClock::time_point{Milliseconds{5'000}});
  expect(lease.end() - before == Milliseconds{5'000}, "a renewal counts from when it was sent");
  test_unconfirmed();
  const auto failure =
      failure_of([] { return plan_lease({.ttl = Milliseconds{1'000}, .kill_after = Milliseconds{900}}); });
  expect(failure && failure->code() == ExitCode::usage, "times that do not fit into the lease are a usage error");
  expect(failure && std::string_view{failure->what()}.find("= 1.533s, more than the 0.988s") != std::string_view::npos,
         "the message shows the sum",
         failure ? failure->what() : "");
}

}  // namespace rlock::unit
