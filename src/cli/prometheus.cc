#include "cli/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/escape.h"

namespace rlock::cli {
namespace {

using observe::Counters;
using observe::Ending;
using observe::LockFacts;

double seconds(Milliseconds duration) { return static_cast<double>(duration.count()) / 1000; }

std::optional<double> held(const LockFacts& lock) {
  if (lock.foreign)
    return 1;
  return static_cast<double>(
      std::count_if(lock.holders.begin(), lock.holders.end(), std::mem_fn(&observe::HolderFacts::holds)));
}

/// How long the lock stays taken if nobody renews it.
std::optional<double> lease(const LockFacts& lock) {
  if (lock.foreign)
    return lock.foreign->expires_in ? std::optional{seconds(*lock.foreign->expires_in)} : std::nullopt;
  Milliseconds longest = lock.cooling;
  for (const auto& holder : lock.holders) longest = std::max(longest, holder.lease);
  return lock.holders.empty() ? std::nullopt : std::optional{seconds(longest)};
}

std::optional<double> held_for(const LockFacts& lock) {
  std::optional<Milliseconds> longest;
  for (const auto& holder : lock.holders) {
    if (holder.holds())
      longest = std::max(longest.value_or(Milliseconds{0}), holder.held);
  }
  return longest ? std::optional{seconds(*longest)} : std::nullopt;
}

std::optional<double> last_exit_status(const LockFacts& lock) {
  if (lock.last && lock.last->ending.kind == Ending::Kind::timeout)
    return static_cast<double>(ExitCode::timeout);
  return lock.last ? lock.last->ending.status() : std::nullopt;
}

std::optional<double> last_failed(const LockFacts& lock) {
  return lock.last ? std::optional{lock.last->ending.is_failure() ? 1.0 : 0.0} : std::nullopt;
}

/// Of the last run, or the last success.
template <auto run>
std::optional<double> ended_at(const LockFacts& lock) {
  return lock.*run ? std::optional{seconds((lock.*run)->ended_at.time_since_epoch())} : std::nullopt;
}

template <auto counter>
std::optional<double> total(const LockFacts& lock) {
  return static_cast<double>(lock.counters.*counter);
}

struct Metric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  std::optional<double> (*value)(const LockFacts&);  // empty where the lock has no sample
};

constexpr std::array metrics{
    Metric{"rlock_held", "gauge", "Number of holders; 0 when the lock is free or cooling.", held},
    Metric{"rlock_on_hold",
           "gauge",
           "Whether the lock is on hold: nobody is granted it.",
           [](const LockFacts& lock) { return std::optional{lock.hold ? 1.0 : 0.0}; }},
    Metric{"rlock_waiting",
           "gauge",
           "Number of waiters in the lock's queue.",
           [](const LockFacts& lock) { return std::optional{static_cast<double>(lock.waiting)}; }},
    Metric{"rlock_lease_seconds", "gauge", "How long the lock stays taken if nobody renews it.", lease},
    Metric{"rlock_held_seconds", "gauge", "How long the oldest holder has held the lock.", held_for},
    Metric{"rlock_last_exit_status",
           "gauge",
           "Exit status of the previous run, 124 if it ran for too long; absent if it has none.",
           last_exit_status},
    Metric{"rlock_last_failed",
           "gauge",
           "Whether the previous run failed, also where it has no exit status.",
           last_failed},
    Metric{"rlock_last_end_timestamp_seconds", "gauge", "When the previous run ended.", ended_at<&LockFacts::last>},
    Metric{"rlock_last_success_timestamp_seconds",
           "gauge",
           "When a run last ended with 0.",
           ended_at<&LockFacts::success>},
    Metric{"rlock_acquired_total", "counter", "How often the lock was taken.", total<&Counters::acquired>},
    Metric{"rlock_waited_total", "counter", "How often the lock was taken after a wait.", total<&Counters::waited>},
    Metric{
        "rlock_evicted_total", "counter", "How many holders were made to give the lock up.", total<&Counters::evicted>},
    Metric{"rlock_lost_total", "counter", "How many holders died or could not keep the lock.", total<&Counters::lost>},
    Metric{"rlock_failed_total", "counter", "How many runs have failed.", total<&Counters::failed>},
};

void add_head(std::string& out, std::string_view name, std::string_view help, std::string_view type) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

/// The one metric with a second label.
void add_skips(std::string& out, const std::vector<LockFacts>& locks, const std::vector<std::string>& labels) {
  constexpr std::string_view name = "rlock_skipped_total";
  add_head(out, name, "How often somebody left without the lock.", "counter");
  for (std::size_t i = 0; i < locks.size(); ++i) {
    const auto& skipped = locks[i].counters.skipped;
    for (std::size_t r = 0; r < skipped.size(); ++r)
      out += fmt::format(
          "{}{{key=\"{}\",reason=\"{}\"}} {}\n", name, labels[i], observe::skip_reasons.at(r).name, skipped.at(r));
  }
}

/// A label's value. Unprintable bytes are escaped as in tables, and then what the format requires.
std::string label(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"')
      out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string format_prometheus(const std::vector<LockFacts>& locks) {
  std::vector<std::string> labels;
  labels.reserve(locks.size());
  for (const LockFacts& lock : locks) labels.push_back(label(lock.name));
  std::string out;
  for (const Metric& metric : metrics) {
    add_head(out, metric.name, metric.help, metric.type);
    for (std::size_t i = 0; i < locks.size(); ++i) {
      if (const auto value = metric.value(locks[i]))
        out += fmt::format("{}{{key=\"{}\"}} {}\n", metric.name, labels[i], *value);
    }
  }
  add_skips(out, locks, labels);
  return out;
}

}  // namespace rlock::cli
