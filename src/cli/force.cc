#include "cli/force.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "base/loop.h"
#include "cli/screen.h"
#include "lock/retry.h"
#include "lock/wording.h"

namespace rlock::cli {
namespace {

using lock::Target;

constexpr Milliseconds shortest_look{30};
constexpr Milliseconds longest_look{70};
constexpr Milliseconds quiet_wait{1000};  // how long to wait before saying for whom

bool holds_on(const Target& target) {
  return target.state == Target::State::held || target.state == Target::State::marked;
}

/// One forced release of one lock.
class ForcedRelease {
 public:
  ForcedRelease(const Settings& settings, lock::Lock& lock, const Log& log)
      : settings_(settings), lock_(lock), log_(log) {}

  ExitCode run() {
    const lock::Forced found = insist([this](Deadline deadline) { return lock_.look(loop_, deadline); });
    if (const auto* foreign = std::get_if<lock::ForeignKey>(&found))
      return settings_.fence ? report_not_held("another program holds it") : delete_foreign(*foreign);
    select(std::get<std::vector<Target>>(found));
    if (pending_.empty())
      return report_not_held(describe_others(std::get<std::vector<Target>>(found)));
    begun_ = BootClock::now();
    note_progress(force());
    return wait_for_rest();
  }

 private:
  /// Repeats a call that fails, for as long as one answer may take.
  template <typename Call>
  std::invoke_result_t<Call, Deadline> insist(Call call) {
    return lock::persist(loop_, lock_, settings_.timeout, call);
  }

  std::string name() const { return printable(lock_.name().text()); }

  ExitCode report_not_held(std::string_view why) const {
    const std::string which = settings_.fence ? fmt::format(" with fence {}", settings_.fence->value) : "";
    log_.notice(fmt::format("{} is not held{}: {}; nothing changed", lock_.name().text(), which, why));
    return ExitCode::negative;
  }

  static std::string describe_others(const std::vector<Target>& found) {
    std::string others;
    for (const Target& target : found) {
      others += fmt::format(
          "{}{} has it with fence {}", others.empty() ? "" : ", ", lock::describe(target.owner), target.fence.value);
    }
    return others.empty() ? "it is free" : others;
  }

  ExitCode delete_foreign(const lock::ForeignKey& foreign) {
    insist([this](Deadline deadline) { return lock_.delete_foreign(loop_, deadline); });
    print(fmt::format(
        "{}: deleted another program's key ({} \"{}\")\n", name(), printable(foreign.type), printable(foreign.value)));
    return ExitCode::ok;
  }

  void select(const std::vector<Target>& found) {
    for (const Target& target : found) {
      if (!settings_.fence || target.fence == *settings_.fence)
        pending_.push_back(target);
    }
  }

  /// Names the fences, so that a repeated call cannot hit the next holder.
  std::vector<Target> force() {
    std::vector<lock::Fence> fences;
    for (const Target& target : pending_) fences.push_back(target.fence);
    const auto how = settings_.now ? lock::Force::now : lock::Force::evict;
    return insist([&](Deadline deadline) { return lock_.force(loop_, how, self_, fences, deadline); });
  }

  /// Prints the holders that are gone, and keeps the others for the next round.
  void note_progress(const std::vector<Target>& now) {
    std::vector<Target> rest;
    for (Target& target : pending_) {
      const auto same = [&target](const Target& other) { return other.fence == target.fence; };
      const auto found = std::find_if(now.begin(), now.end(), same);
      if (found == now.end()) {
        print_gone(target);
      } else if (holds_on(*found)) {
        rest.push_back(*found);
      } else if (was_asked(target)) {
        print_gone(target);  // it gave the lock up, which now only cools
      } else {
        print_removed(target);
      }
    }
    pending_ = std::move(rest);
  }

  /// Whether the holder was told to give the lock up by itself.
  bool was_asked(const Target& target) const { return !settings_.now && target.kept && holds_on(target); }

  void print_gone(const Target& target) const {
    const std::chrono::duration<double> took = BootClock::now() - begun_;
    print(fmt::format(
        "{}: evicted {}, gone after {:.1f}s\n", name(), printable(lock::describe(target.owner)), took.count()));
  }

  /// A command whose lock was taken away is stopped when its keeper notices, and at the latest when its lease ends.
  void print_removed(const Target& target) const {
    const std::string owner = printable(lock::describe(target.owner));
    if (target.state == Target::State::cooling) {
      print(fmt::format("{}: no longer cooling after {}\n", name(), owner));
      return;
    }
    const std::string warning =
        target.kept ? ", which may run for up to " + format_duration(target.lease) + " more" : "";
    print(fmt::format("{}: evicted {}{}\n", name(), owner, warning));
  }

  ExitCode wait_for_rest() {
    const Deadline give_up = settings_.wait ? begun_ + *settings_.wait : never;
    while (!pending_.empty()) {
      const auto now = BootClock::now();
      if (now >= begun_ + quiet_wait)
        report_waiting();
      if (now >= give_up)
        return report_timeout();
      const auto again = std::min(give_up, now + lock::jitter(shortest_look, longest_look));
      loop_.wait_out(again);
      note_progress(force());
    }
    return ExitCode::ok;
  }

  void report_waiting() {
    if (std::exchange(waiting_is_reported_, true))
      return;
    for (const Target& target : pending_) {
      log_.notice(fmt::format("waiting for {} to give up {}, lease {} left",
                              lock::describe(target.owner),
                              lock_.name().text(),
                              format_duration(target.lease)));
    }
  }

  ExitCode report_timeout() const {
    for (const Target& target : pending_) {
      log_.notice(fmt::format(
          "{} has not given up {} yet; its lease is no longer renewed and ends in {}; --now breaks it at once",
          lock::describe(target.owner),
          lock_.name().text(),
          format_duration(target.lease)));
    }
    return ExitCode::conflict;
  }

  const Settings& settings_;
  lock::Lock& lock_;
  const Log& log_;
  Loop loop_;
  lock::Owner self_ = lock::describe_self({}, {}, {});
  std::vector<Target> pending_;
  BootClock::time_point begun_{};
  bool waiting_is_reported_ = false;
};

}  // namespace

ExitCode force_release(const Settings& settings, lock::Lock& lock, const Log& log) {
  return ForcedRelease{settings, lock, log}.run();
}

}  // namespace rlock::cli
