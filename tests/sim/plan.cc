#include "plan.h"

#include <fmt/format.h>

#include <array>

namespace sim {
namespace {

template <typename T, std::size_t size>
T one_of(Random& random, const std::array<T, size>& choices) {
  return choices[static_cast<std::size_t>(random.below(size))];
}

/// What the clients of one world have in common.
struct Theme {
  int capacity = 1;
  bool mixed = false;  // each has a capacity of its own
  bool once = false, two_ids = true, per = false, latest = false, replace = false, limited = false, min_hold = false;
  bool forced = false, nested = false, first = false, backoff = false, attempts = false;
  Nanos ttl = 0;
};

Theme choose_theme(Random& random, Random& extra, bool quorum) {
  Theme theme;
  theme.ttl = one_of(
      random, std::array{500 * milli, 500 * milli, second, second, 3 * second, 3 * second, 10 * second, 30 * second});
  if (quorum)
    theme.ttl = std::min(theme.ttl, 3 * second);
  if (random.chance(30)) {
    theme.capacity = one_of(random, std::array{0, 0, 2, 3});
    theme.mixed = random.chance(50);
  } else {
    theme.once = random.chance(15);
    theme.per = extra.chance(10);
  }
  theme.latest = random.chance(10);
  theme.replace = random.chance(10);
  theme.limited = random.chance(10);
  theme.min_hold = random.chance(10);
  theme.forced = random.chance(20);
  theme.nested = extra.chance(20);
  if (quorum && theme.capacity > 1)
    theme.capacity = 1;  // rlock does not allow --slots there
  return theme;
}

/// What was thought of last.
void choose_more(Random& random, ClientPlan& client, const Theme& theme) {
  const bool is_run = client.kind == ClientPlan::Kind::run;
  client.first = theme.first && client.kind != ClientPlan::Kind::force && random.chance(30);
  if (theme.backoff && is_run && random.chance(60))
    client.backoff = random.between(20 * milli, second);
  if (theme.attempts && client.skips() && random.chance(60))
    client.attempts = static_cast<int>(random.between(1, 3));
}

ClientPlan choose_client(Random& random, Random& extra, const Theme& theme, bool quorum) {
  using Kind = ClientPlan::Kind;
  ClientPlan client;
  client.kind = random.chance(70) ? Kind::run : Kind::acquire;
  if (theme.forced && random.chance(20))
    client.kind = Kind::force;
  client.start = random.chance(30) ? 0 : random.between(0, 3 * second);
  client.rounds = static_cast<int>(random.between(1, 6));
  client.pause = random.chance(50) ? random.between(0, 20 * milli) : random.between(0, 2 * second);
  client.work =
      random.chance(75) ? random.between(0, 80 * milli) : random.between(0, std::min(2 * theme.ttl, 10 * second));
  client.status = random.chance(30) ? static_cast<int>(random.between(1, 3)) : 0;
  client.obeys = random.chance(70);
  client.capacity = theme.mixed ? one_of(random, std::array{0, 1, quorum ? 1 : 2}) : theme.capacity;
  client.ttl = random.chance(80) ? theme.ttl
                                 : one_of(random, std::array{500 * milli, 2 * second, quorum ? second : 30 * second});
  if (random.chance(40))
    client.wait = random.chance(40) ? 0 : random.between(1, 3 * theme.ttl);
  if (theme.min_hold && random.chance(50))
    client.min_hold = random.between(milli, 3 * second);
  client.latest = theme.latest && random.chance(50);
  client.replace = theme.replace && client.kind == Kind::run && random.chance(50);
  if (theme.limited && random.chance(50))
    client.max_waiting = static_cast<int>(random.between(0, 2));
  if (theme.once && client.capacity == 1 && client.kind == Kind::run)
    client.once = extra.chance(70) || !theme.two_ids ? "v1" : "v2";
  if (theme.per && client.capacity == 1 && client.kind == Kind::run)
    client.per = extra.between(100 * milli, 3 * second);
  client.rate = 1 + static_cast<double>(random.between(-400, 400)) / 100'000;
  return client;
}

/// Makes it a process of the command of a client before it, which takes the lock as that one does.
void put_inside(Random& random, ClientPlan& client, std::size_t outer, const ClientPlan& enclosing) {
  const ClientPlan before = client;
  client = {.kind = ClientPlan::Kind::run,
            .start = enclosing.start,
            .rounds = before.rounds,
            .pause = before.pause,
            .work = before.work,
            .status = before.status,
            .obeys = before.obeys,
            .capacity = enclosing.capacity == 1 && random.chance(20) ? 0 : enclosing.capacity,
            .ttl = before.ttl,
            .replace = enclosing.replace,
            .inside = outer,
            .rate = enclosing.rate};
}

/// Puts some clients into one before them, which is in none.
void nest(Random& random, Plan& plan) {
  if (!random.chance(40))
    return;
  for (std::size_t i = 1; i < plan.clients.size(); ++i) {
    const auto outer = static_cast<std::size_t>(random.below(i));
    const auto is_outer = [&](const ClientPlan& c) { return c.inside == i; };
    const ClientPlan& enclosing = plan.clients[outer];
    const bool may_enclose = enclosing.kind == ClientPlan::Kind::run || enclosing.kind == ClientPlan::Kind::acquire;
    if (may_enclose && !enclosing.inside && std::none_of(plan.clients.begin(), plan.clients.end(), is_outer) &&
        plan.clients[i].kind == ClientPlan::Kind::run && random.chance(40))
      put_inside(random, plan.clients[i], outer, enclosing);
  }
}

/// Gives the clients of a world many of the options that are rare elsewhere.
void widen(Random random, Plan& plan, bool is_fair) {
  using Kind = ClientPlan::Kind;
  const bool quorum = plan.is_quorum(), can_date = is_fair && !quorum;
  if (is_fair || std::none_of(plan.clients.begin(), plan.clients.end(), [](const auto& c) { return c.skips(); }))
    nest(random, plan);
  const bool has_nested = std::any_of(plan.clients.begin(), plan.clients.end(), [](const auto& c) { return c.inside; });
  const bool once = random.chance(40) && (is_fair || !has_nested), per = random.chance(40) && can_date;
  const bool min_hold = random.chance(30), backoff = random.chance(40), latest = random.chance(25);
  const bool replace = random.chance(25), first = random.chance(30) && !quorum, limited = random.chance(30);
  const bool crowd = !once && !per && random.chance(30), forced = random.chance(30), is_busy = random.chance(50);
  const int capacity = one_of(random, std::array{0, 0, quorum ? 0 : 2, quorum ? 0 : 3});
  for (ClientPlan& c : plan.clients) {
    if (c.kind == Kind::acquire)
      c.renews = random.chance(50);
    if (c.kind == Kind::run && forced && random.chance(20) && !c.inside)
      c.kind = Kind::force;
    if (c.kind == Kind::force)
      c.now = random.chance(40);
    if (is_busy)
      c.start /= 10, c.pause /= 10;
    if (c.inside) {
      const ClientPlan& enclosing = plan.clients[*c.inside];
      c.replace = enclosing.replace;
      c.capacity = enclosing.capacity == 1 ? c.capacity : enclosing.capacity;
    }
    if (c.inside || c.kind == Kind::force || c.kind == Kind::hold)
      continue;
    if (crowd && !c.skips())  // what is done once is not shared
      c.capacity = random.chance(85) ? capacity : 1;
    const bool is_run = c.kind == Kind::run;
    if (once && is_run && c.capacity == 1 && random.chance(60))
      c.once = random.chance(70) || !can_date ? "v1" : "v2";
    if (per && is_run && c.capacity == 1 && random.chance(60))
      c.per = random.between(100 * milli, 3 * second);
    if (min_hold && random.chance(50))
      c.min_hold = random.between(milli, 2 * second);
    if (backoff && is_run && random.chance(60))
      c.backoff = random.between(20 * milli, second);
    if (c.skips() && random.chance(40))
      c.attempts = static_cast<int>(random.between(1, 3));
    c.latest = c.latest || (latest && random.chance(50));
    c.replace = c.replace || (replace && is_run && random.chance(50));
    c.first = c.first || (first && random.chance(30));
    if (limited && random.chance(50))
      c.max_waiting = static_cast<int>(random.between(0, 3));
  }
}

/// What was thought of last of all.
void vary(Random random, Plan& plan, bool is_fair) {
  using Kind = ClientPlan::Kind;
  const auto shares = [](const ClientPlan& c) { return c.capacity != 1; };
  const bool is_shared = std::any_of(plan.clients.begin(), plan.clients.end(), shares);
  const bool mixes = random.chance(30) && !plan.is_quorum();
  const bool is_long = random.chance(4) && is_fair && !plan.is_quorum() && !is_shared && plan.may_listen;
  plan.has_many_ids = random.chance(50) && is_fair && !plan.is_quorum();
  for (ClientPlan& c : plan.clients) {
    if (mixes && c.capacity != 1 && !c.inside)
      c.capacity = one_of(random, std::array{0, 2, 3});
    if (c.inside && random.chance(30))
      c.work = random.between(std::min(c.ttl, 5 * second), std::min(3 * c.ttl, 10 * second));
    c.late = c.kind == Kind::force && random.chance(50);
    c.rounds += is_long ? 20 : 0;
    if (c.kind != Kind::hold)
      continue;
    c.until = random.chance(30);
    if (random.chance(30))
      c.rounds = 20, c.work /= 10, c.pause /= 10;
    if (is_fair && random.chance(40))
      c.ttl = 60LL * 86'400 * second, c.status = 0;  // which it ends
  }
  for (ClientPlan& c : plan.clients) {
    if (c.inside && plan.clients[*c.inside].capacity != 1)
      c.capacity = plan.clients[*c.inside].capacity;
    if (c.inside && !is_fair && random.chance(50))
      plan.faults.push_back({.kind = FaultPlan::Kind::kill_client,
                             .at = random.between(0, 4 * second),
                             .client = *c.inside,
                             .flag = random.chance(50)});
  }
  const auto is_kind = [&](Kind kind, bool inside) {
    return std::any_of(plan.clients.begin(), plan.clients.end(), [&](const auto& c) {
      return c.kind == kind && c.inside.has_value() == inside;
    });
  };
  const bool is_single = !is_fair && !plan.is_quorum();
  if (is_single && is_shared && random.chance(30))
    plan.faults.push_back({.kind = FaultPlan::Kind::step_clock,
                           .at = random.between(0, 4 * second),
                           .duration = -random.between(milli, 10 * second)});
  for (int i = 0; i < 3 && is_single && is_kind(Kind::force, false); ++i)
    plan.faults.push_back({.kind = FaultPlan::Kind::foreign_key,
                           .at = random.between(0, 6 * second),
                           .duration = random.between(milli, second)});
  if (is_single && !is_kind(Kind::run, true) && random.chance(30)) {
    for (ClientPlan& c : plan.clients) {
      if (c.kind == Kind::run && c.capacity == 1 && c.once.empty() && random.chance(60))
        c.per = random.between(100 * milli, 3 * second);
      if (c.per > 0 && random.chance(40))
        c.attempts = static_cast<int>(random.between(1, 3));
    }
  }
  const auto lost = is_fair || plan.is_quorum() ? 0 : random.between(0, 2);
  for (std::int64_t i = 0; i < lost; ++i)
    plan.faults.push_back(
        {.kind = FaultPlan::Kind::lost_seats, .at = random.between(0, 6 * second), .flag = random.chance(50)});
  const auto mute = !is_fair && random.chance(40) ? random.between(1, 3) : 0;
  const auto all = plan.clients.size(), victim = random.chance(50) ? all : static_cast<std::size_t>(random.below(all));
  for (std::int64_t i = 0; i < mute; ++i)
    plan.faults.push_back({.kind = FaultPlan::Kind::mute,
                           .at = random.between(0, 6 * second),
                           .client = victim,
                           .host = static_cast<std::size_t>(random.below(plan.hosts.size()))});
}

/// A fail-over of the only server, or another program that uses the lock's key.
FaultPlan choose_late_fault(Random& random, bool has_replica) {
  return {.kind = has_replica ? FaultPlan::Kind::fail_over : FaultPlan::Kind::foreign_key,
          .at = random.between(0, 6 * second),
          .duration = random.between(milli, 2 * second)};
}

FaultPlan choose_fault(Random& random, const Plan& plan, bool steps_clocks) {
  using Kind = FaultPlan::Kind;
  static constexpr std::array often{Kind::cut,
                                    Kind::cut,
                                    Kind::partition,
                                    Kind::partition,
                                    Kind::freeze_host,
                                    Kind::slow_host,
                                    Kind::freeze_client,
                                    Kind::freeze_client,
                                    Kind::kill_client,
                                    Kind::kill_client,
                                    Kind::flush_scripts,
                                    Kind::no_memory,
                                    Kind::restart};
  FaultPlan fault;
  fault.kind = one_of(random, often);
  if (steps_clocks && random.chance(30))
    fault.kind = Kind::step_clock;
  if (steps_clocks && plan.is_quorum() && fault.kind == Kind::restart)
    fault.kind = Kind::cut;  // a server whose clock is set after its start votes too soon, as the manual says
  fault.at = random.between(0, 5 * second);
  fault.duration = random.chance(70) ? random.between(milli, second) : random.between(second, 20 * second);
  fault.client = static_cast<std::size_t>(random.below(plan.clients.size() + 1));  // the last: all
  fault.host = static_cast<std::size_t>(random.below(plan.hosts.size()));
  fault.flag = random.chance(50);
  if (fault.kind == Kind::step_clock) {
    fault.host = 0;
    fault.duration = fault.flag ? -fault.duration : fault.duration;
  }
  return fault;
}

}  // namespace

bool Plan::is_fair() const {
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (has(clients.size() + i))
      return false;
  }
  return weather.storms == 0;
}

Nanos Plan::set_back() const {
  Nanos sum = 0;
  for (const FaultPlan& fault : faults) sum += fault.kind == FaultPlan::Kind::step_clock ? std::abs(fault.duration) : 0;
  return sum;
}

Nanos Plan::calm_at() const {
  Nanos calm = weather.storms > 0 ? 10 * second : 0;
  for (const FaultPlan& fault : faults)
    calm = std::max(calm, fault.at + (fault.kind == FaultPlan::Kind::step_clock ? 0 : std::abs(fault.duration)));
  return calm;
}

Plan make_plan(std::uint64_t seed, bool may_be_wide) {
  Random random{seed};
  Random extra = random.fork(1);  // what was thought of later, so that old seeds stay much the same worlds
  Plan plan;
  plan.seed = seed;
  plan.hosts.resize(one_of(random, std::array<std::size_t, 10>{1, 1, 1, 1, 1, 1, 3, 3, 3, 5}));
  for (Clock& clock : plan.hosts)
    clock = {.rate = 1 + static_cast<double>(random.between(-400, 400)) / 100'000,
             .offset = 1'790'000'000 * second + random.between(0, 100 * second)};
  plan.weather.latency = random.between(50 * micro, random.chance(80) ? milli : 20 * milli);
  plan.weather.jitter = random.between(0, plan.weather.latency);
  const bool is_fair = random.chance(25);
  if (!is_fair)
    plan.weather.storms = random.chance(50) ? 0 : static_cast<int>(random.between(1, 5));
  plan.may_listen = random.chance(90);
  plan.is_hasty = extra.chance(30);
  Theme theme = choose_theme(random, extra, plan.is_quorum());
  Random late = random.fork(2);
  theme.first = !plan.is_quorum() && late.chance(10);
  theme.backoff = late.chance(12);
  theme.attempts = late.chance(50);
  const bool holds = late.chance(12);
  plan.has_replica = !plan.is_quorum() && late.chance(12);
  plan.confirms = plan.has_replica && late.chance(60);
  if (!is_fair || plan.is_quorum()) {
    // A server that was frozen dates a success too late, and who hears late of an end may not know the last success.
    theme.per = theme.two_ids = false;
    theme.nested = theme.nested && !theme.once;
  }
  const auto clients = random.between(2, plan.is_quorum() ? 5 : 9);
  for (std::int64_t i = 0; i < clients; ++i) {
    plan.clients.push_back(choose_client(random, extra, theme, plan.is_quorum()));
    choose_more(late, plan.clients.back(), theme);
    const auto outer = static_cast<std::size_t>(extra.below(static_cast<std::uint64_t>(i) + 1));
    const ClientPlan& enclosing = plan.clients[outer];
    const bool may_enclose = enclosing.kind == ClientPlan::Kind::run ||
                             (may_be_wide && enclosing.kind == ClientPlan::Kind::acquire && !theme.once);
    if (theme.nested && may_enclose && !enclosing.inside && outer + 1 < plan.clients.size())
      put_inside(extra, plan.clients.back(), outer, enclosing);
  }
  Random wide = random.fork(3);
  const bool is_wide = may_be_wide && wide.chance(60);
  if (holds || (is_wide && wide.chance(20)))
    plan.clients.back().kind = ClientPlan::Kind::hold;
  const bool steps_clocks = random.chance(10);
  const auto faults = is_fair ? 0 : random.between(0, 8);
  for (std::int64_t i = 0; i < faults; ++i) plan.faults.push_back(choose_fault(random, plan, steps_clocks));
  const auto late_faults = !is_fair && (plan.has_replica || late.chance(8)) ? late.between(1, 3) : 0;
  for (std::int64_t i = 0; i < late_faults; ++i) plan.faults.push_back(choose_late_fault(late, plan.has_replica));
  plan.may_count = late.chance(90);
  plan.is_watched = random.fork(4).chance(20);
  if (is_wide)
    widen(wide, plan, is_fair);
  if (may_be_wide)
    vary(random.fork(5), plan, is_fair);
  return plan;
}

const char* name(FaultPlan::Kind kind) {
  static constexpr std::array names{"cut",
                                    "partition",
                                    "freeze host",
                                    "slow host",
                                    "restart",
                                    "flush scripts",
                                    "no memory",
                                    "freeze client",
                                    "kill client",
                                    "step clock",
                                    "fail over",
                                    "foreign key",
                                    "lost seats",
                                    "mute"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string describe(const Plan& plan) {
  const auto seconds = [](Nanos t) { return static_cast<double>(t) / 1e9; };
  std::string out = fmt::format("seed {}: {} server(s), latency {:.1f} ms{}{}{}{}{}{}{}\n",
                                plan.seed,
                                plan.hosts.size(),
                                seconds(plan.weather.latency) * 1000,
                                plan.weather.storms > 0 ? ", storms" : "",
                                plan.may_listen ? "" : ", nobody may subscribe",
                                plan.may_count ? "" : ", nobody may count subscribers",
                                plan.confirms      ? ", --replicas 1"
                                : plan.has_replica ? ", a replica"
                                                   : "",
                                plan.is_hasty ? ", hasty" : "",
                                plan.is_watched ? ", watched" : "",
                                plan.has_many_ids ? ", an ID for each round" : "");
  static constexpr std::array kinds{"run", "acquire", "release --force", "hold --for"};
  for (std::size_t i = 0; i < plan.clients.size(); ++i) {
    const ClientPlan& c = plan.clients[i];
    if (!plan.has(i))
      continue;
    out += fmt::format("  {}: client{} from {:.3f}s: {} x {}",
                       i,
                       i,
                       seconds(c.start),
                       c.rounds,
                       kinds.at(static_cast<std::size_t>(c.kind)));
    if (c.capacity != 1)
      out += c.capacity == 0 ? " --shared" : fmt::format(" --slots {}", c.capacity);
    out += fmt::format(" --ttl {}", seconds(c.ttl));
    if (c.wait)
      out += fmt::format(" --wait {:.3f}", seconds(*c.wait));
    if (c.min_hold > 0)
      out += fmt::format(" --min-hold {:.3f}", seconds(c.min_hold));
    if (c.max_waiting)
      out += fmt::format(" --max-waiting {}", *c.max_waiting);
    if (!c.once.empty())
      out += " --once " + c.once;
    if (c.per > 0)
      out += fmt::format(" --once-per {:.3f}", seconds(c.per));
    if (c.backoff > 0)
      out += fmt::format(" --backoff {:.3f}", seconds(c.backoff));
    if (c.attempts)
      out += fmt::format(" --attempts {}", *c.attempts);
    if (c.inside)
      out += fmt::format(" inside client{}", *c.inside);
    out += fmt::format("{}{}{}{}{}{}, works {:.3f}s, exits with {}{}\n",
                       c.latest ? " --latest" : "",
                       c.replace ? " --replace" : "",
                       c.first ? " --first" : "",
                       c.now ? " --now" : "",
                       c.late ? ", late" : "",
                       c.renews ? ", renews" : "",
                       seconds(c.work),
                       c.status,
                       c.obeys ? "" : ", ignores TERM");
  }
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    const FaultPlan& f = plan.faults[i];
    if (plan.has(plan.clients.size() + i))
      out += fmt::format("  {}: {} at {:.3f}s for {:.3f}s, client{}, redis{}{}\n",
                         plan.clients.size() + i,
                         name(f.kind),
                         seconds(f.at),
                         seconds(f.duration),
                         f.client,
                         f.host + 1,
                         f.flag ? ", flag" : "");
  }
  return out;
}

}  // namespace sim
