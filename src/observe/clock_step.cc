#include "observe/clock_step.h"

#include <algorithm>

#include "base/error.h"
#include "observe/facts.h"
#include "observe/inquiry.h"
#include "observe/listing.h"

namespace rlock::observe {
namespace {

constexpr Milliseconds smallest_step{1000};  // smaller steps are normal for a clock that NTP adjusts

WallTime latest_of(const LockFacts& facts) {
  WallTime latest{};
  for (const HolderFacts& holder : facts.holders) latest = std::max(latest, holder.acquired_at);
  if (facts.last)
    latest = std::max(latest, facts.last->ended_at);
  return facts.success ? std::max(latest, facts.success->ended_at) : latest;
}

/// How far the server's clock is behind what a sample of its locks has recorded; zero where it is not.
Milliseconds measure_step(Loop& loop, redis::Server& server, const std::string& prefix, Milliseconds timeout) {
  Milliseconds step{0};
  const auto take = [&](const lock::LockName& name, lock::Fields fields) {
    const LockFacts facts = read_facts(name, std::move(fields));
    step = std::max(step, latest_of(facts) - facts.now);
  };
  const auto pass_over = [](const lock::LockName&, const Error&) {};
  const Inquiry inquiry{.ask = status_request, .take = take, .pass_over = pass_over};
  const Scope scope{.prefix = prefix, .remembered = true};
  Budget budget{server};
  const auto sample = sample_locks(loop, server, scope, timeout, budget);
  Inquirer{loop, inquiry, timeout, budget}.ask_all({.node = server, .whole = server}, sample);
  return step;
}

}  // namespace

std::optional<Milliseconds> find_clock_step(Loop& loop,
                                            redis::Server& server,
                                            const std::string& prefix,
                                            Milliseconds timeout) {
  try {
    const Milliseconds step = measure_step(loop, server, prefix, timeout);
    return step >= smallest_step ? std::optional{step} : std::nullopt;
  } catch (const Error& error) {
    if (error.code() != ExitCode::no_permission)
      throw;
    return std::nullopt;
  }
}

}  // namespace rlock::observe
