#include "client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/loop.h"
#include "lock/lease.h"
#include "lock/lock.h"
#include "lock/retry.h"
#include "lock/taker.h"
#include "redis/address.h"
#include "redis/server.h"
#include "run/renewer.h"

namespace sim {
namespace {

using rlock::BootClock;
using rlock::Deadline;
using rlock::Error;
using rlock::Milliseconds;
namespace lock = rlock::lock;
using rlock::run::Renewer;

constexpr Milliseconds timeout{2000};                                 // for one answer
constexpr Nanos middle_of_servers = (1'790'000'000LL + 50) * second;  // their clocks when the world begins
constexpr Milliseconds max_lease{longest_quorum_lease / milli};

Milliseconds milliseconds(Nanos time) { return Milliseconds{time / milli}; }

std::vector<rlock::redis::Server> servers_of(rlock::Loop& loop, const Plan& plan) {
  std::vector<rlock::redis::Server> servers;
  for (std::size_t i = 1; i <= plan.hosts.size(); ++i)
    servers.emplace_back(loop, rlock::redis::parse_address(fmt::format("redis://10.0.0.{}", i)));
  return servers;
}

class Client {
 public:
  Client(Machine& machine, const Plan& plan, std::size_t number, Judge& judge, Tokens& tokens)
      : machine_(machine),
        number_(number),
        plan_(plan.clients[number]),
        confirms_(plan.confirms),
        has_many_ids_(plan.has_many_ids),
        judge_(judge),
        tokens_(tokens),
        servers_(servers_of(loop_, plan)),
        lock_(servers_, lock::LockName{"rlock:", "k"}, max_lease) {}

  void take_part() {
    wait(plan_.start);
    for (int round = 0; round < plan_.rounds; ++round) {
      if (!plan_.once.empty() && has_many_ids_)
        plan_.once = fmt::format("{}.{}", plan_.once.substr(0, 2), round);
      if (plan_.inside && !is_started())
        return;
      if (plan_.kind == ClientPlan::Kind::force)
        force();
      else if (plan_.kind == ClientPlan::Kind::hold)
        hold();
      else
        acquire();
      wait(plan_.pause);
    }
  }

 private:
  /// Waits until the command that starts it runs, for some seconds.
  bool is_started() {
    for (int i = 0; i < 200 && !tokens_.contains(*plan_.inside); ++i) wait(20 * milli);
    return tokens_.contains(*plan_.inside);
  }

  bool is_run() const { return plan_.kind == ClientPlan::Kind::run; }
  Nanos now() const { return machine_.world().now(); }

  void wait(Nanos time) { loop_.wait_out(BootClock::now() + std::chrono::nanoseconds{time}); }

  /// The true time at which our clock shows that.
  Nanos true_time(Deadline deadline) const { return machine_.clock.when(deadline.time_since_epoch().count()); }

  lock::Claim make_claim() const {
    lock::Claim claim{.token = lock::Token::random(),
                      .level = lock::Level::random(),
                      .capacity = {plan_.capacity},
                      .ttl = milliseconds(plan_.ttl),
                      .min_hold = milliseconds(plan_.min_hold),
                      .owner = {.holder = machine_.name(),
                                .host = machine_.name(),
                                .user = "sim",
                                .pid = 1,
                                .stays = is_run(),
                                .command = "c",
                                .note = ""},
                      .has_keeper = is_run(),
                      .latest = plan_.latest,
                      .replace = plan_.replace,
                      .first = plan_.first,
                      .max_waiting = plan_.max_waiting,
                      .attempts = plan_.attempts};
    if (confirms_)
      claim.replicas = lock::Replicas{};
    if (plan_.backoff > 0)
      claim.backoff = {milliseconds(plan_.backoff), milliseconds(3 * plan_.backoff)};
    if (!plan_.once.empty())
      claim.once = plan_.once;
    if (plan_.per > 0)
      claim.once_per = milliseconds(plan_.per);
    return claim;
  }

  void acquire() {
    const auto number = judge_.asks(machine_.name(), plan_);
    const lock::LeaseTerms terms = lock::plan_lease({.ttl = milliseconds(plan_.ttl), .timeout = timeout});
    lock::Patience patience{.timeout = timeout, .wait = {}, .caller_renews = is_run()};
    if (plan_.wait)
      patience.wait = milliseconds(*plan_.wait);
    lock::Taker taker{log_, lock_, make_claim(), terms, patience};
    try {
      const auto enclosing = plan_.inside ? tokens_.find(*plan_.inside) : tokens_.end();
      const lock::Taken taken =
          taker.take(enclosing != tokens_.end() ? std::optional{enclosing->second} : std::nullopt);
      if (const auto* conflict = std::get_if<lock::Conflict>(&taken))
        refuse(number, *conflict);
      else if (is_run())
        run(number, taker.claim(), std::get<lock::Granted>(taken), terms);
      else
        use(number, taker.claim(), std::get<lock::Granted>(taken), terms);
    } catch (const Error& error) {
      judge_.fails(number, error.what());
    }
  }

  void refuse(Judge::Number number, const lock::Conflict& conflict) {
    using Kind = lock::Conflict::Kind;
    if (conflict.kind == Kind::done)
      judge_.is_done(number);
    else if (conflict.kind == Kind::superseded)
      judge_.is_superseded(number);
    else if (conflict.kind == Kind::failed)
      judge_.is_exhausted(number);
    else if (conflict.kind == Kind::full)
      judge_.is_crowded_out(number);
    else if (conflict.message.ends_with("right after it was granted"))
      judge_.is_refused(number, conflict.message);  // nobody counts it: it had the lock
    else
      judge_.is_turned_away(number, conflict.message);
  }

  void tell_grant(Judge::Number number, const lock::Claim& claim, const lock::Granted& granted, Deadline until) {
    judge_.is_granted(
        number, claim.token.text(), granted.fence.value, granted.slot, true_time(granted.sent), true_time(until));
  }

  /// As the keeper of `rlock run` does.
  void run(Judge::Number number,
           const lock::Claim& claim,
           const lock::Granted& granted,
           const lock::LeaseTerms& terms) {
    Renewer renewer{log_, lock_, claim, granted, terms};
    tell_grant(number, claim, granted, renewer.lease().kill_at());
    tokens_.insert_or_assign(number_, claim.token);
    const Deadline work_ends = BootClock::now() + std::chrono::nanoseconds{plan_.work};
    while (BootClock::now() < work_ends && renewer.state() == Renewer::State::held) {
      const Deadline limit = renewer.lease().term_at();
      const auto at = BootClock::now();
      if (at >= limit)
        break;
      if (at < renewer.next())
        renewer.sleep(std::min({renewer.next(), limit, work_ends}));
      else if (renewer.attempt(limit))
        judge_.is_extended(number, true_time(at), true_time(renewer.lease().kill_at()));
    }
    lock::End end{.status = plan_.status};
    if (renewer.state() == Renewer::State::released)
      loop_.wait_out(work_ends);  // the script around us has given it up
    if (BootClock::now() < work_ends)
      end = stop(number, renewer, terms);
    tokens_.erase(number_);
    judge_.gives_up(number, end.word.empty() ? std::to_string(*end.status) : end.word);
    const bool is_lost = renewer.state() == Renewer::State::lost;
    finish(number, is_lost ? Deadline::min() : renewer.lease().end(), [&](Deadline deadline) {
      return lock_.release(claim, end, deadline);
    });
  }

  /// The command gets TERM, and KILL before its lease is over.
  lock::End stop(Judge::Number number, const Renewer& renewer, const lock::LeaseTerms& terms) {
    if (renewer.state() == Renewer::State::lost)
      judge_.is_lost(number);
    if (renewer.state() == Renewer::State::evicted)
      judge_.is_evicted(number);
    if (!plan_.obeys)
      loop_.wait_out(std::min(BootClock::now() + terms.kill_after, renewer.lease().kill_at()));
    if (renewer.state() != Renewer::State::evicted)
      return {.status = 143, .word = "lost"};
    const bool replaced = renewer.eviction().kind == lock::Eviction::Kind::replaced;
    return {.word = (replaced ? "replaced," : "evicted,") + rlock::percent_encode(renewer.eviction().by)};
  }

  void finish(Judge::Number number, Deadline lease_end, const std::function<lock::Release(Deadline)>& attempt) {
    try {
      const auto release = lock::release_in_time(lock_, timeout, lease_end, log_, attempt, [] {});
      judge_.gave_up(number, true, release.kind == lock::Release::Kind::lost);
    } catch (const Error&) {
      judge_.gave_up(number, false, false);
    }
  }

  /// As a script does with `rlock acquire` and `rlock release`, in which runs take the lock once more; now and then it
  /// forgets to release.
  void use(Judge::Number number,
           const lock::Claim& claim,
           const lock::Granted& granted,
           const lock::LeaseTerms& terms) {
    Deadline lease_end = lock::Lease{terms, granted.sent, granted.unconfirmed}.end();
    tell_grant(number, claim, granted, lease_end);
    tokens_.insert_or_assign(number_, claim.token);
    const Deadline work_ends = BootClock::now() + std::chrono::nanoseconds{plan_.work};
    while (BootClock::now() < std::min(work_ends, lease_end)) {
      loop_.wait_out(std::min({work_ends, lease_end, BootClock::now() + terms.ttl / 3}));
      if (plan_.renews && BootClock::now() < work_ends && !renew(number, claim.token, terms, lease_end))
        break;
    }
    tokens_.erase(number_);
    if (plan_.status == 3) {
      judge_.stops(number);
      return;
    }
    judge_.stops_all(claim.token.text());
    const lock::Level request = lock::Level::random();
    finish(number, rlock::never, [&](Deadline deadline) { return lock_.release_all(claim.token, request, deadline); });
  }

  /// As `rlock renew`. Returns whether it has the lock, as far as it knows.
  bool renew(Judge::Number number, const lock::Token& token, const lock::LeaseTerms& terms, Deadline& lease_end) {
    try {
      Deadline sent;
      const lock::Renewal renewal = lock::persist(lock_, timeout, [&](Deadline deadline) {
        sent = BootClock::now();
        return lock_.renew(token, terms.ttl, deadline);
      });
      if (std::holds_alternative<lock::Extended>(renewal)) {
        lease_end = std::max(lease_end, lock::Lease{terms, sent, {}}.end());
        judge_.is_extended(number, true_time(sent), true_time(lease_end));
        return true;
      }
      std::holds_alternative<lock::Evicted>(renewal) ? judge_.is_evicted(number) : judge_.is_lost(number);
      return false;
    } catch (const Error&) {
      return true;
    }
  }

  /// With a name so long that history cuts it.
  static lock::Owner operator_self() {
    return {.holder = "operator-of-the-night-shift-in-the-second-data-centre-of-the-north",
            .host = "h",
            .user = "u",
            .pid = 1,
            .stays = true,
            .command = "",
            .note = ""};
  }

  void hold() {
    const lock::Level request = lock::Level::random(), end = lock::Level::random();
    try {
      judge_.is_unblocked();
      const Nanos asked = now();
      machine_.world().tell(machine_.name(), "holds the lock back");
      lock::HoldEnd until = milliseconds(plan_.ttl);
      if (plan_.until)
        until = rlock::WallTime{milliseconds(middle_of_servers + now() + plan_.ttl)};
      lock::persist(
          lock_, timeout, [&](Deadline deadline) { return lock_.hold(until, operator_self(), request, deadline); });
      if (plan_.until)
        judge_.is_on_hold(0, plan_.ttl + 50 * second, asked);
      else
        judge_.is_on_hold(plan_.ttl - (now() - asked), plan_.ttl, asked);
      wait(plan_.work);
      judge_.is_unblocked();
      if (plan_.status != 0)
        return;
      const Nanos asked_to_end = now();
      lock::persist(lock_, timeout, [&](Deadline deadline) { return lock_.end_hold(operator_self(), end, deadline); });
      judge_.is_open_again(asked_to_end);
    } catch (const Error&) {
      judge_.may_end_late();  // else it ends by itself
    }
  }

  void delete_foreign() {
    judge_.is_cleared();
    machine_.world().tell(machine_.name(), "deletes another program's key");
    lock::persist(lock_, timeout, [&](Deadline deadline) { return lock_.delete_foreign(deadline); });
  }

  void force() {
    const lock::Owner self = operator_self();
    try {
      const lock::Forced found = lock::persist(lock_, timeout, [&](Deadline deadline) { return lock_.look(deadline); });
      if (std::holds_alternative<lock::ForeignKey>(found))
        delete_foreign();
      std::vector<lock::Fence> fences = std::exchange(stale_fences_, {});
      if (const auto* held = std::get_if<std::vector<lock::Target>>(&found)) {
        for (const lock::Target& target : *held) fences.push_back(target.fence);
      }
      if (plan_.late)
        stale_fences_ = fences;
      if (std::find(fences.begin(), fences.end(), lock::Fence{0}) != fences.end())
        judge_.is_cleared();  // a record that nobody can read
      while (!fences.empty()) {
        judge_.forces(plan_.now);
        machine_.world().tell(machine_.name(), "forces the holders to give up the lock");
        const auto how = plan_.now ? lock::Force::now : lock::Force::evict;
        const auto targets =
            lock::persist(lock_, timeout, [&](Deadline deadline) { return lock_.force(how, self, fences, deadline); });
        judge_.forces(plan_.now);
        for (const lock::Target& target : targets) {
          if (target.state == lock::Target::State::marked)
            judge_.is_marked(target.fence.value);
        }
        std::erase_if(fences, [&](lock::Fence fence) {
          return std::none_of(targets.begin(), targets.end(), [&](const lock::Target& t) {
            return t.fence == fence && t.state == lock::Target::State::marked;
          });
        });
        wait(200 * milli);
      }
    } catch (const Error&) {
      // It is tried again in the next round, if there is one.
    }
  }

  Machine& machine_;
  std::size_t number_;
  ClientPlan plan_;
  bool confirms_, has_many_ids_;
  Judge& judge_;
  Tokens& tokens_;
  std::vector<lock::Fence> stale_fences_;
  const rlock::Log log_{machine_.world().tells() ? rlock::Verbosity::verbose : rlock::Verbosity::quiet};
  rlock::Loop loop_;
  std::vector<rlock::redis::Server> servers_;
  lock::Lock lock_;
};

}  // namespace

void be_client(Machine& machine, const Plan& plan, std::size_t number, Judge& judge, Tokens& tokens) {
  Client{machine, plan, number, judge, tokens}.take_part();
}

}  // namespace sim
