#include "lock/lease.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace rlock::lock {
namespace {

Milliseconds margin_of(Milliseconds ttl) {
  return std::min(Milliseconds{5000}, std::max(ttl / 20, std::min(Milliseconds{250}, ttl / 10)));
}

/// "29.698s": exact, so that the reader can check a sum.
std::string seconds(Milliseconds duration) { return fmt::format("{}s", static_cast<double>(duration.count()) / 1000); }

/// The options that leave too little room. Without any, the default times fit into every lease.
std::string describe_cause(const LeaseOptions& options) {
  std::string text;
  if (options.renew_every)
    text = "--renew-every " + seconds(*options.renew_every);
  if (options.kill_after)
    text += (text.empty() ? "" : " and ") + ("--kill-after " + seconds(*options.kill_after));
  return text + (options.renew_every && options.kill_after ? " do" : " does");
}

void check_fit(const LeaseTerms& terms, const LeaseOptions& options) {
  const auto sum = terms.renew_every + 2 * terms.attempt + terms.kill_after + terms.margin;
  if (sum <= terms.usable())
    return;
  const auto [option, given] =
      options.kill_after ? std::pair{"--kill-after", terms.kill_after} : std::pair{"--renew-every", terms.renew_every};
  const auto room = given - (sum - terms.usable());
  const auto least = options.kill_after ? Milliseconds{0} : Milliseconds{10};
  throw Error{ExitCode::usage,
              fmt::format("{} not fit into --ttl {}: {} to the next renewal + 2 x {} to try it twice + {} from TERM to "
                          "KILL + {} margin = {}, more than the {} that can be relied on{}",
                          describe_cause(options),
                          seconds(terms.ttl),
                          seconds(terms.renew_every),
                          seconds(terms.attempt),
                          seconds(terms.kill_after),
                          seconds(terms.margin),
                          seconds(sum),
                          seconds(terms.usable()),
                          room >= least ? fmt::format("; {} may be at most {}", option, seconds(room)) : "")};
}

}  // namespace

LeaseTerms unconfirmed_terms(const LeaseTerms& terms, Milliseconds ttl) {
  return {.ttl = ttl,
          .renew_every = ttl / 10,
          .attempt = ttl / 5,
          .kill_after = std::min(terms.kill_after, ttl / 4),
          .margin = margin_of(ttl)};
}

LeaseTerms plan_lease(const LeaseOptions& options) {
  const Milliseconds ttl = options.ttl;
  const LeaseTerms terms{
      .ttl = ttl,
      .renew_every = options.renew_every.value_or(ttl / 3),
      .attempt = std::min({ttl / 10, options.timeout, Milliseconds{2000}}),
      .kill_after = options.kill_after.value_or(std::min(Milliseconds{5000}, ttl / 4)),
      .margin = margin_of(ttl),
  };
  check_fit(terms, options);
  return terms;
}

}  // namespace rlock::lock
