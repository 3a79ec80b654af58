#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/loop.h"
#include "cli/claim.h"
#include "cli/failure.h"
#include "cli/hold.h"
#include "cli/options.h"
#include "cli/screen.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
#include "lock/lock.h"
#include "lock/retry.h"
#include "lock/wording.h"
#include "observe/listing.h"
#include "observe/survey.h"
#include "redis/server.h"

namespace rlock::cli {
namespace {

using lock::Target;

constexpr Milliseconds shortest_look{30};
constexpr Milliseconds longest_look{70};
constexpr Milliseconds quiet_wait{1000};     // how long to wait before saying for whom
constexpr Milliseconds worth_noticing{100};  // by how much a lease must grow to have been renewed

bool holds_on(const Target& target) {
  return target.state == Target::State::held || target.state == Target::State::marked;
}

/// `release --force` of one lock: makes the holders give it up and waits until they have; with --now it takes the lock
/// away at once. Says who is next. With --hold, nobody is.
class ForcedRelease {
 public:
  ForcedRelease(const Settings& settings, std::vector<redis::Server>& servers, lock::Lock& lock, const Log& log)
      : settings_(settings), servers_(servers), lock_(lock), log_(log) {}

  /// A hold comes first, so that nobody gets the lock meanwhile, not even if its holder has just gone.
  ExitCode run() {
    if (settings_.hold_end)
      put_on_hold();
    const lock::Forced found = look();
    if (!is_there(found))
      return report_not_held(describe_others(found));
    const std::string next = find_next();
    const ExitCode outcome = break_it(found);
    if (outcome == ExitCode::ok)
      print(next);
    return outcome;
  }

 private:
  /// An existing hold keeps its reason, unless another one is given.
  void put_on_hold() {
    std::string note = settings_.note;
    const auto found = note.empty() ? read_status() : std::vector<observe::LockFacts>{};
    if (!found.empty() && found[0].hold)
      note = found[0].hold->hold.by.note;
    cli::put_on_hold(settings_, note, lock_);
  }

  ExitCode break_it(const lock::Forced& found) {
    if (const auto* foreign = std::get_if<lock::ForeignKey>(&found))
      return delete_foreign(*foreign);
    select(std::get<std::vector<Target>>(found));
    begun_ = BootClock::now();
    note_progress(force());
    return wait_for_rest();
  }

  lock::Forced look() {
    return insist([this](Deadline deadline) { return lock_.look(deadline); });
  }

  bool is_meant(const Target& target) const { return !settings_.fence || target.fence == *settings_.fence; }

  /// Whether there is something to release.
  bool is_there(const lock::Forced& found) const {
    if (std::holds_alternative<lock::ForeignKey>(found))
      return !settings_.fence;
    const auto& targets = std::get<std::vector<Target>>(found);
    return std::any_of(targets.begin(), targets.end(), [this](const Target& target) { return is_meant(target); });
  }

  std::vector<observe::LockFacts> read_status() {
    return insist([this](Deadline) {
      return observe::survey(servers_, {.prefix = settings_.prefix, .names = {lock_.name()}}, settings_.timeout);
    });
  }

  /// A line that says who is first in the queue, if anybody waits and the lock is not on hold.
  std::string find_next() {
    const auto found = read_status();
    if (found.empty() || found[0].hold || found[0].waiters.empty())
      return "";
    const lock::Owner& first = found[0].waiters.front().owner;
    return fmt::format("next: {} pid {}\n", printable(first.holder), first.pid);
  }

  /// Repeats a call that fails, for as long as one answer may take.
  template <typename Call>
  std::invoke_result_t<Call, Deadline> insist(Call call) {
    return lock::persist(lock_, settings_.timeout, call);
  }

  std::string name() const { return printable(lock_.name().text()); }

  ExitCode report_not_held(std::string_view why) const {
    const std::string which = settings_.fence ? fmt::format(" with fence {}", settings_.fence->value) : "";
    const bool looks_like_pattern = is_pattern(settings_, lock_.name().text());
    log_.error(fmt::format("{} is not held{}: {}; {}{}{}",
                           lock_.name().text(),
                           which,
                           why,
                           settings_.hold_end ? fmt::format("it is on hold now, which `rlock hold {} --end` ends",
                                                            lock_words(settings_, lock_.name().text()))
                                              : "nothing changed",
                           looks_like_pattern ? "; release takes the name of one lock, not a pattern" : "",
                           is_unheard_of_ && !looks_like_pattern ? fmt::format("; {}", unheard_of) : ""));
    return ExitCode::negative;
  }

  std::string describe_others(const lock::Forced& found) {
    if (std::holds_alternative<lock::ForeignKey>(found))
      return "another program holds it";
    std::string others;
    for (const Target& target : std::get<std::vector<Target>>(found)) {
      others += fmt::format(
          "{}{} has it with fence {}", others.empty() ? "" : ", ", lock::describe(target.owner), target.fence.value);
    }
    return others.empty() ? describe_free() : others;
  }

  std::string describe_free() {
    const auto found = read_status();
    is_unheard_of_ = !found.empty() && observe::is_unheard_of(found[0]);
    if (settings_.hold_end || found.empty() || !found[0].hold)
      return "it is free";
    return fmt::format("it is {}; `rlock hold {} --end` ends that",
                       lock::describe(found[0].hold->hold),
                       lock_words(settings_, lock_.name().text()));
  }

  ExitCode delete_foreign(const lock::ForeignKey& foreign) {
    insist([this](Deadline deadline) { return lock_.delete_foreign(deadline); });
    const std::string key = lock::describe_key(foreign.type, foreign.value);
    print(fmt::format("{}: deleted another program's key ({})\n", name(), printable(key)));
    return ExitCode::ok;
  }

  void select(const std::vector<Target>& found) {
    for (const Target& target : found) {
      if (!is_meant(target))
        continue;
      pending_.push_back(target);
      pending_.back().dead = was_asked(target) && lock::is_gone(target.owner);
      if (pending_.back().dead)
        log_.notice(describe_dead(target));
    }
  }

  std::string describe_dead(const Target& target) const {
    return fmt::format("{}: {} has died; the lock is free when its lease ends, in {}",
                       lock_.name().text(),
                       lock::describe(target.owner),
                       format_duration(target.lease));
  }

  /// Names the fences, so that a repeated call cannot hit the next holder. A dead holder need not be told, and has not
  /// been evicted.
  std::vector<Target> force() {
    std::vector<lock::Fence> fences;
    for (const Target& target : pending_) {
      if (!target.dead)
        fences.push_back(target.fence);
    }
    const auto how = settings_.now ? lock::Force::now : lock::Force::evict;
    asked_at_ = BootClock::now();
    return insist([&](Deadline deadline) { return lock_.force(how, self_, fences, deadline); });
  }

  /// Prints the holders that are gone, and keeps the others for the next round.
  void note_progress(const std::vector<Target>& now) {
    std::vector<Target> rest;
    for (Target& target : pending_) {
      const auto less = [](const Target& a, const Target& b) { return a.fence < b.fence; };
      const auto [found, after] = std::equal_range(now.begin(), now.end(), target, less);
      const bool is_known = found != after;
      if (is_known && holds_on(*found)) {
        rest.push_back(*found);
        rest.back().dead = target.dead && found->lease < target.lease + worth_noticing;
      } else if (!is_known || was_asked(target)) {
        print_gone(target);  // it gave the lock up, which may still cool
      } else {
        print_removed(target);
      }
    }
    pending_ = std::move(rest);
    looked_at_ = asked_at_;
  }

  /// Whether the holder was told to give the lock up by itself.
  bool was_asked(const Target& target) const { return !settings_.now && target.has_keeper && holds_on(target); }

  void print_gone(const Target& target) const {
    const std::string owner = printable(lock::describe(target.owner));
    const auto now = BootClock::now();
    const bool is_silent = !target.dead && now >= looked_at_ + target.lease;  // it did not end when it was told
    const std::chrono::duration<double> took = now - begun_;
    if (is_silent) {
      const std::string_view remark = target.owner.for_another
                                          ? "its script was at most told to end, and may run on"
                                          : "its command was killed by then, unless it has --on-lost warn or both of "
                                            "its processes were stopped";
      print(fmt::format("{}: evicted {}; it did not give the lock up, and its lease ended after {:.1f}s: {}\n",
                        name(),
                        owner,
                        took.count(),
                        remark));
      return;
    }
    print(target.dead ? fmt::format("{}: {} had died, and its lease ended after {:.1f}s\n", name(), owner, took.count())
                      : fmt::format("{}: evicted {}, gone after {:.1f}s\n", name(), owner, took.count()));
  }

  /// A command whose lock was taken away is stopped when its keeper notices, and at the latest when its lease ends.
  void print_removed(const Target& target) const {
    if (target.state == Target::State::cooling) {
      print(fmt::format("{}: no longer cooling after {}\n", name(), printable(target.owner.holder)));
      return;
    }
    std::string remark;
    if (target.has_keeper)
      remark = lock::is_gone(target.owner) ? ", which seems to have died; its command may run on"
                                           : ", which may run for up to " + format_duration(target.lease) + " more";
    print(fmt::format("{}: evicted {}{}\n", name(), printable(lock::describe(target.owner)), remark));
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
      lock_.loop().wait_out(again);
      note_progress(force());
    }
    return ExitCode::ok;
  }

  void report_waiting() {
    if (std::exchange(waiting_is_reported_, true))
      return;
    for (const Target& target : pending_) {
      if (target.dead)
        continue;
      log_.notice(
          fmt::format("waiting for {} to give up {}, lease {} left; the eviction stands even if you stop waiting",
                      lock::describe(target.owner),
                      lock_.name().text(),
                      format_duration(target.lease)));
    }
  }

  ExitCode report_timeout() const {
    for (const Target& target : pending_) {
      if (target.dead) {
        log_.notice(describe_dead(target) + "; --now breaks it at once");
        continue;
      }
      log_.notice(fmt::format(
          "{} has not given up {} yet; its lease is no longer renewed and ends in {}; --now breaks it at once",
          lock::describe(target.owner),
          lock_.name().text(),
          format_duration(target.lease)));
    }
    return ExitCode::conflict;
  }

  const Settings& settings_;
  std::vector<redis::Server>& servers_;
  lock::Lock& lock_;
  const Log& log_;
  lock::Owner self_ = lock::describe_self({}, {}, {});
  std::vector<Target> pending_;
  BootClock::time_point begun_{};
  BootClock::time_point asked_at_ = BootClock::now();
  BootClock::time_point looked_at_ = asked_at_;  // no later than the server's look, so that a lease is over by its end
  bool waiting_is_reported_ = false;
  bool is_unheard_of_ = false;
};

ExitCode release_own(const Settings& settings, std::vector<redis::Server>& servers, lock::Lock& lock, const Log& log) {
  const Deadline give_up = BootClock::now() + settings.timeout;
  const lock::Token token = choose_token(
      settings, lock.name(), servers, "; `rlock acquire` prints one; to break the lock of somebody else write --force");
  const lock::Level request = lock::Level::random();
  const auto attempt = [&](Deadline deadline) { return lock.release_all(token, request, deadline); };
  const auto outcome = lock::release_in_time(lock, settings.timeout, never, log, attempt, [] {});
  if (outcome.kind != lock::Release::Kind::lost)
    return ExitCode::ok;
  return say_not_held(lock, token, servers, settings, give_up, log);
}

}  // namespace

ExitCode release(const Settings& settings) {
  const Log log{settings.verbosity};
  const lock::LockName name = choose_held_lock(settings);
  Loop loop;
  auto servers = choose_servers(loop, settings, log, observe::listing_limits);  // --force lists all holders
  lock::Lock lock{servers, name, settings.max_lease};
  const std::string done = "it may be released all the same: rlock status " + lock_words(settings, name.text());
  return explaining(settings, lock, "nothing was released", done, [&] {
    return settings.force ? ForcedRelease{settings, servers, lock, log}.run()
                          : release_own(settings, servers, lock, log);
  });
}

}  // namespace rlock::cli
