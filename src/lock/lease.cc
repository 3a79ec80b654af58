#include "lock/lease.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace rlock::lock {
namespace {

using std::chrono::milliseconds;

milliseconds margin_of(milliseconds ttl) {
  return std::min(milliseconds{5000}, std::max(ttl / 20, std::min(milliseconds{250}, ttl / 10)));
}

void check_fit(const LeaseTerms& terms) {
  const auto sum = terms.renew_every + 2 * terms.attempt + terms.kill_after + terms.margin;
  if (sum <= terms.usable())
    return;
  throw Error{ExitCode::usage,
              fmt::format("--ttl {} ms is too short: --renew-every {} + two attempts of {} + --kill-after {} + "
                          "a margin of {} = {} ms, more than {} ms",
                          terms.ttl.count(),
                          terms.renew_every.count(),
                          terms.attempt.count(),
                          terms.kill_after.count(),
                          terms.margin.count(),
                          sum.count(),
                          terms.usable().count())};
}

}  // namespace

LeaseTerms unconfirmed_terms(const LeaseTerms& terms, milliseconds ttl) {
  return {.ttl = ttl,
          .renew_every = ttl / 10,
          .attempt = ttl / 5,
          .kill_after = std::min(terms.kill_after, ttl / 4),
          .margin = margin_of(ttl)};
}

LeaseTerms plan_lease(const LeaseOptions& options) {
  const milliseconds ttl = options.ttl;
  const LeaseTerms terms{
      .ttl = ttl,
      .renew_every = options.renew_every.value_or(ttl / 3),
      .attempt = std::min({ttl / 10, options.timeout, milliseconds{2000}}),
      .kill_after = options.kill_after.value_or(std::min(milliseconds{5000}, ttl / 4)),
      .margin = margin_of(ttl),
  };
  check_fit(terms);
  return terms;
}

}  // namespace rlock::lock
