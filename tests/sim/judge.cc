#include "judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace sim {
namespace {

constexpr Nanos day = 86'400 * second;

/// The seats of a crowd whose key has expired are left for a day.
bool is_of_crowd(const std::string& key) { return key.ends_with(":seats"); }

}  // namespace

Judge::Number Judge::asks(const std::string& who, const ClientPlan& client) {
  Acquisition a;
  a.who = who;
  a.client = client;
  a.asked = world_.now();
  all_.push_back(std::move(a));
  world_.tell(who, "asks for the lock");
  return all_.size() - 1;
}

void Judge::is_refused(Number n, const std::string& why) {
  all_[n].state = Acquisition::State::refused;
  all_[n].stopped = world_.now();
  world_.tell(all_[n].who, "is refused: " + why);
}

void Judge::is_turned_away(Number n, const std::string& why) {
  is_refused(n, why);
  ++turned_away_;
  noted_ += first_grant_ >= 0 && all_[n].asked > first_grant_;
}

/// Somebody must have done it, or be about to say so.
void Judge::is_done(Number n) {
  is_turned_away(n, "it is done");
  check_news(all_[n]);
  const Acquisition& idle = all_[n];
  const auto has_done = [&](const Acquisition& a) {
    const bool is_fresh =
        idle.client.per == 0 || is_lenient() || a.granted + idle.client.per + idle.client.per / 100 > idle.asked;
    return a.how == "0" && is_fresh && (idle.client.once.empty() || a.client.once == idle.client.once);
  };
  if (std::none_of(all_.begin(), all_.end(), has_done))
    world_.accuse(all_[n].who + " was told that the work is done, which nobody has done");
}

void Judge::is_superseded(Number n) {
  is_turned_away(n, "superseded");
  const Acquisition& old = all_[n];
  if (!old.client.latest && !old.client.replace)
    world_.accuse(old.who + " was superseded, but did not ask for that");
  // A question that came late seems to be younger than it is.
  const auto is_newer = [&](const Acquisition& a) {
    return &a != &old && (a.client.latest || a.client.replace) && (a.asked + doubt() >= old.asked || !plan_.is_fair());
  };
  if (forgotten_ < 0 && std::none_of(all_.begin(), all_.end(), is_newer))
    world_.accuse(old.who + " was superseded by nobody");
}

/// Whether it ended by itself, but not well.
bool Judge::has_failed(const Acquisition& a) { return a.released && a.how.size() == 1 && a.how != "0" && !a.is_inner; }

/// In the order in which the server granted them.
std::vector<const Judge::Acquisition*> Judge::granted_before(long long fence) const {
  std::vector<const Acquisition*> before;
  for (const Acquisition& a : all_) {
    if (a.fence != 0 && a.fence < fence && !a.is_inner)
      before.push_back(&a);
  }
  std::sort(before.begin(), before.end(), [](const auto* a, const auto* b) { return a->fence < b->fence; });
  return before;
}

long Judge::failures_before(const Acquisition& asked, bool at_most) const {
  const Nanos per = asked.client.once.empty() ? asked.client.per : 0;  // an ID's failures count for ever
  const Nanos allowance = per / 50;
  long count = 0;
  for (const Acquisition* a : granted_before(asked.fence != 0 ? asked.fence : forever)) {
    const bool is_sure = has_failed(*a) && a->client.skips() && a->stopped + doubt() < asked.asked &&
                         (per == 0 || a->asked + per - allowance > world_.now());
    const bool is_possible = per == 0 || a->granted + per + allowance > asked.asked;
    const bool is_other = a->client.once != asked.client.once;
    if (is_other && !(at_most && asked.client.once.empty()))  // a period counts the failures of all IDs
      continue;
    if (a->how == "0" && (!at_most || end_of_levels(*a) < asked.asked))
      count = is_other ? count : 0;
    else if (at_most ? is_possible : is_sure)
      ++count;
  }
  return count;
}

void Judge::is_exhausted(Number n) {
  is_turned_away(n, "it was tried often enough");
  const Acquisition& a = all_[n];
  if (!is_lenient() && failures_before(a, true) < a.client.attempts.value_or(0))
    world_.accuse(fmt::format("{} was told that {} attempts have failed, which is not so", a.who, *a.client.attempts));
}

void Judge::check_attempts(const Acquisition& granted) {
  if (granted.client.attempts && granted.client.skips() && !is_lenient() &&
      failures_before(granted, false) >= *granted.client.attempts)
    world_.accuse(granted.who + " tries once more than its --attempts allow");
}

void Judge::is_crowded_out(Number n) {
  is_turned_away(n, "too many wait");
  const Acquisition& late = all_[n];
  const auto others = std::count_if(all_.begin(), all_.end(), [&](const Acquisition& a) {
    const bool waits_no_more = a.fence != 0 ? a.granted < late.asked : a.stopped != 0 && a.stopped < late.asked;
    return &a != &late && !waits_no_more;
  });
  if (plan_.is_fair() && others < *late.client.max_waiting)
    world_.accuse(fmt::format("{} was told that too many wait, but only {} did", late.who, others));
}

/// Whoever has waited although as many did already as it allows.
void Judge::check_crowd(const Acquisition& granted) {
  const ClientPlan& client = granted.client;
  if (!client.max_waiting || client.latest || client.replace || client.first || client.skips() || is_lenient() ||
      !plan_.may_listen)
    return;
  const auto others = std::count_if(all_.begin(), all_.end(), [&](const Acquisition& a) {
    return &a != &granted && a.client.is_plain() && a.asked + doubt() < granted.asked && a.fence != 0 &&
           a.granted > granted.asked + doubt() && a.client.capacity == client.capacity;
  });
  if (others > 0 && others >= *client.max_waiting)
    world_.accuse(fmt::format("{} waited behind {} others, more than it allows", granted.who, others));
}

void Judge::fails(Number n, const std::string& why) {
  is_refused(n, why);
  // No server of a quorum has the scripts at first, so that a grant takes five round trips, and half the lease is to be
  // left.
  const Nanos way = plan_.weather.latency + plan_.weather.jitter;
  const bool is_short = plan_.is_quorum() && all_[n].client.ttl < 20 * way;
  if (plan_.is_fair() && !is_short)
    world_.accuse(fmt::format("{} failed, although nothing went wrong: {}", all_[n].who, why));
}

/// When the last run inside it has ended, too: only then has the acquisition ended.
Nanos Judge::end_of_levels(const Acquisition& a) const {
  Nanos end = a.stopped;
  for (const Acquisition& level : all_) {
    if (level.token == a.token)
      end = std::max(end, level.released || level.fence == 0 ? level.stopped : forever);
  }
  return end;
}

/// When it was asked for. A run inside shares what was granted before, and what somebody has asked to be done to that.
Nanos Judge::begin_of_levels(const Acquisition& a) const {
  Nanos begin = a.asked;
  for (const Acquisition& level : all_) {
    if (level.token == a.token)
      begin = std::min(begin, level.asked);
  }
  return begin;
}

/// By `release --force --now`, while a run inside went on.
bool Judge::was_broken(const Acquisition& a) const { return forced_now_ >= a.stopped && end_of_levels(a) > a.stopped; }

void Judge::check_news(const Acquisition& idle) {
  // In a long queue the news is carried on by those who have to hear it, if one of the first in the queue does.
  if (is_lenient() || plan_.is_hasty || !plan_.may_listen || idle.client.once.empty() ||
      idle.client.kind != ClientPlan::Kind::run)
    return;
  for (const Acquisition& a : all_) {
    const Nanos done = end_of_levels(a);
    const bool was_fresh = idle.client.per == 0 || done < a.sent + idle.client.per - idle.client.per / 100;
    if (a.released && a.how == "0" && a.client.once == idle.client.once && was_fresh && a.asked < idle.asked &&
        done > idle.asked + doubt() && done < world_.now() - promptness())
      world_.accuse(fmt::format(
          "{} was told {:.3f}s late that the work was done", idle.who, static_cast<double>(world_.now() - done) / 1e9));
  }
}

Nanos Judge::promptness() const { return 8 * (plan_.weather.latency + plan_.weather.jitter) + 60 * milli; }

Nanos Judge::doubt() const { return 10 * (plan_.weather.latency + plan_.weather.jitter) + 30 * milli; }

bool Judge::believes(const Acquisition& a) const {
  return a.state == Acquisition::State::believes && a.until > world_.now() && !given_up_.contains(a.token);
}

bool Judge::exclude_each_other(const Acquisition& a, const Acquisition& b) const {
  if (a.token == b.token)
    return false;
  if (a.client.capacity != b.client.capacity || a.client.capacity == 1)
    return true;
  return a.client.capacity > 1 && a.slot == b.slot;
}

void Judge::is_granted(
    Number n, const std::string& token, long long fence, int slot, Nanos sent, Nanos believes_until) {
  Acquisition& a = all_[n];
  a.token = token;
  a.is_inner = a.client.inside && std::any_of(all_.begin(), all_.end(), [&](const Acquisition& other) {
                 return &other != &a && other.token == token;
               });
  a.state = Acquisition::State::believes;
  a.fence = fence;
  a.slot = slot;
  a.granted = world_.now();
  a.sent = sent;
  a.until = believes_until;
  const Nanos removed = is_script(a) ? forced_ : forced_now_;
  a.excused = removed >= begin_of_levels(a) || forgotten_ >= a.asked;
  if (++grants_ == 1)
    first_grant_ = world_.now();
  world_.tell(
      a.who,
      fmt::format("HOLDS, fence {}, slot {}, until {:.6f}", fence, slot, static_cast<double>(believes_until) / 1e9));
  check_exclusion(a);
  check_fence(a);
  if (a.is_inner) {
    check_inside(a);
    return;
  }
  check_once(a);
  check_min_hold(a);
  check_backoff(a);
  check_block(a);
  check_attempts(a);
  check_crowd(a);
  check_idle(a);
  if (!is_lenient()) {
    check_order(a);
    check_delay(a);
  }
}

void Judge::check_exclusion(const Acquisition& granted) {
  if (!believes(granted) || granted.excused)
    return;
  long others = 0;
  for (const Acquisition& a : all_) {
    if (&a == &granted || !believes(a) || a.excused)
      continue;
    others += a.token != granted.token && !a.is_inner;
    if (exclude_each_other(a, granted))
      world_.accuse(fmt::format(
          "{} (fence {}) and {} (fence {}) both hold the lock", a.who, a.fence, granted.who, granted.fence));
  }
  if (granted.client.capacity > 1 && (others >= granted.client.capacity || granted.slot >= granted.client.capacity))
    world_.accuse(granted.who + " is one holder too many");
}

/// Larger than that of everybody who held the lock before it was asked for; where there is one holder, of everybody,
/// unless it hears late of a grant that was taken away again. A run inside another has the same. Once a server of a
/// quorum has lost its data, and its clock is behind, a fence that it knew may be one that no majority knows any more.
void Judge::check_fence(const Acquisition& granted) {
  for (const Acquisition& a : all_) {
    const bool is_alone = granted.client.capacity == 1 && a.client.capacity == 1 && !granted.excused;
    const bool was_before = a.granted < granted.asked || is_alone;
    if (a.token == granted.token) {
      if (a.fence != granted.fence)
        world_.accuse(fmt::format("{} has fence {}, but {} has {}", granted.who, granted.fence, a.who, a.fence));
      continue;
    }
    const bool is_shared = a.fence == granted.fence;  // with readers of a quorum, too
    if (a.fence != 0 && a.fence >= granted.fence && (was_before || is_shared) && !granted.is_inner &&
        forgotten_ < a.asked && forgetful_.empty())
      world_.accuse(fmt::format("{} has fence {} after {} had {}", granted.who, granted.fence, a.who, a.fence));
  }
}

/// First come, first served, where the difference is larger than what the network may have made of it. The fences tell
/// the order in which the server served them, whoever heard of it first.
void Judge::check_order(const Acquisition& granted) {
  if (!granted.client.is_plain() || granted.client.capacity == 0 || forced_ >= granted.asked)
    return;
  for (const Acquisition& a : all_) {
    const bool was_earlier = a.fence != 0 && a.fence < granted.fence && a.asked > granted.asked + doubt();
    if (was_earlier && a.client.is_plain() && a.client.capacity == granted.client.capacity)
      world_.accuse(fmt::format("{} overtook {}, which had asked {:.3f}s before",
                                a.who,
                                granted.who,
                                static_cast<double>(a.asked - granted.asked) / 1e9));
  }
}

/// A lock that was released is handed over at once.
void Judge::check_delay(const Acquisition& granted) {
  Nanos free = granted.asked;
  for (const Acquisition& a : all_) {
    if (&a == &granted || a.fence == 0)
      continue;
    if (!a.released || forced_ >= 0)
      return;
    free = std::max({free, end_of_levels(a) + cooling(a, true) * 101 / 100, a.granted + a.client.min_hold * 101 / 100});
  }
  free = std::max(free, held_until_);
  if (!plan_.may_listen || plan_.confirms || granted.client.capacity != 1)
    return;
  const bool others_wait = std::any_of(all_.begin(), all_.end(), [&](const Acquisition& a) {
    return &a != &granted && a.state != Acquisition::State::over && a.asked <= granted.granted && !a.client.is_plain();
  });
  if (!others_wait && granted.granted > free + promptness())
    world_.accuse(fmt::format(
        "{} got the lock {:.3f}s after it was free", granted.who, static_cast<double>(granted.granted - free) / 1e9));
}

/// Whatever has gone wrong, a free lock is granted soon when all is well again.
void Judge::check_idle(const Acquisition& granted) {
  // A grant to one that was killed lasts that long, and so does it until a server that was restarted votes again.
  if (ends_late_)
    return;  // a hold of which nobody knows may begin late, too
  const Nanos soon = 5 * second + promptness() + (plan_.is_quorum() ? longest_quorum_lease : 0);
  Nanos free = std::max({granted.asked, plan_.calm_at(), std::max(blocked_until_, held_until_) + plan_.set_back()});
  for (const Acquisition& a : all_) {
    if (&a == &granted || (a.fence == 0 && a.released))
      continue;
    const bool is_known = a.released || a.state == Acquisition::State::believes;
    const Nanos late =
        std::max(a.stopped, plan_.calm_at()) + a.client.ttl;  // by a renewal that was on its way for long
    const Nanos known = is_known ? std::max(a.until, a.stopped) : late;
    const Nanos end = std::max(known, forgotten_ + a.client.ttl) + plan_.set_back();
    if (a.state != Acquisition::State::asking)
      free = std::max(free, end + a.client.min_hold + 3 * a.client.backoff);
  }
  if (granted.granted > free + soon)
    world_.accuse(fmt::format(
        "{} got the lock {:.1f}s after it was free", granted.who, static_cast<double>(granted.granted - free) / 1e9));
}

/// A success is known to those servers of a quorum that had granted the lock. Once one of them has lost it, a majority
/// of the others need not have heard of it.
void Judge::check_once(const Acquisition& granted) {
  const ClientPlan& client = granted.client;
  if (!client.skips() || granted.excused || (client.per > 0 && is_lenient()))
    return;
  for (const Acquisition& a : all_) {
    const bool is_fresh = client.per == 0 || granted.granted < a.asked + client.per - client.per / 100;
    const bool is_same = client.once.empty() || (a.client.once == client.once && is_last_success(a, granted));
    if (a.released && !a.is_inner && a.how == "0" && is_fresh && is_same && !was_broken(a) && a.fence < granted.fence &&
        weakened_ < a.asked)
      world_.accuse(fmt::format("{} does again what {} has done", granted.who, a.who));
  }
}

/// What was done once may be done again when something else has been done since. Who waits is told before that, but far
/// back in a long queue only if one of the first waits for the same; else it depends on the IDs that are remembered. A
/// question that came late seems to be younger than it is.
bool Judge::is_last_success(const Acquisition& success, const Acquisition& granted) const {
  constexpr long remembered = 8;
  // A server of a quorum may hear late of a success, and takes it for a newer one.
  const long long earliest = plan_.is_quorum() && !plan_.is_fair() ? 0 : success.fence;
  const auto others = std::count_if(all_.begin(), all_.end(), [&](const Acquisition& a) {
    return a.how == "0" && a.client.once != success.client.once && a.fence > earliest && a.fence < granted.fence;
  });
  const bool is_told = success.stopped >= granted.asked && plan_.is_fair();
  return others == 0 || (is_told && (others < remembered || !plan_.is_hasty));
}

/// Counts from when the lock was asked for, which is before the server granted it; in true time, whatever clocks say.
/// The last question is nearer, but a lock may have been granted by an earlier one. A server counts whole milliseconds.
void Judge::check_min_hold(const Acquisition& granted) {
  constexpr Nanos whole = 1'000'000;
  if (forced_ >= 0 || granted.excused || granted.client.capacity != 1)
    return;
  for (const Acquisition& a : all_) {
    if (a.is_inner)
      continue;
    const bool is_sure = !is_lenient() && plan_.may_listen && a.client.kind == ClientPlan::Kind::run;
    const Nanos since = is_sure ? a.sent : a.asked;  // what acquire has sent last is its confirmation
    if (&a != &granted && a.fence != 0 && a.fence < granted.fence && !a.excused && forgotten_ < a.asked &&
        granted.granted < since + a.client.min_hold - a.client.min_hold / 100 - whole)
      world_.accuse(fmt::format("{} got the lock within the minimum hold of {}", granted.who, a.who));
  }
}

/// Nothing new begins under a lock that must be given up.
void Judge::check_inside(const Acquisition& granted) {
  if (plan_.is_quorum() || forgotten_ >= 0 || rewound_ >= 0)
    return;
  for (const Acquisition& a : all_) {
    if (&a != &granted && a.token == granted.token && !a.is_inner && a.marked < granted.asked)
      world_.accuse(granted.who + " got a lock that was to be given up");
  }
}

/// After a run that failed nobody has the lock for a while. The client says, and a server counts, whole milliseconds.
void Judge::check_backoff(const Acquisition& granted) {
  if (forced_ >= 0 || granted.excused || granted.client.capacity != 1 || !forgetful_.empty())
    return;
  for (const Acquisition& a : all_) {
    if (has_failed(a) && a.client.capacity == 1 && a.fence < granted.fence &&
        std::max(forgotten_, rewound_) < a.asked &&
        granted.granted < a.stopped + cooling(a, false) * 99 / 100 - 2 * milli)
      world_.accuse(fmt::format("{} got the lock within the back-off after {}", granted.who, a.who));
  }
}

/// At least, where the row is certain: exclusive runs end in the order of their grants. At most, all others may have
/// failed, even a reader that began later but ended earlier.
Nanos Judge::cooling(const Acquisition& failed, bool at_most) const {
  Nanos time = failed.client.backoff;
  const Nanos end = end_of_levels(failed);
  for (const Acquisition* a : granted_before(at_most ? forever : failed.fence)) {
    if (a->fence >= failed.fence && (a == &failed || a->stopped == 0 || a->stopped > end))
      continue;
    // One that ended within the millisecond in which a success did may have ended before that.
    const bool counts = has_failed(*a) && a->client.capacity == 1 && a->client.work > 2 * milli &&
                        (a->client.backoff > 0 || a->client.skips());
    if (at_most && a->how == "0" && a->stopped > end)
      continue;  // a success in another slot, which came when the row had been counted
    if (at_most ? a->how == "0" : !counts || is_lenient())
      time = failed.client.backoff;
    else
      time = std::min(2 * time, 3 * failed.client.backoff);
  }
  return time;
}

/// Of an operator's hold, or by another program's key.
void Judge::check_block(const Acquisition& granted) {
  if (granted.asked > blocked_since_ && granted.granted < blocked_until_ && !granted.excused && !ends_late_ &&
      weakened_ < block_asked_)
    world_.accuse(granted.who + " got the lock, which was on hold or another program's");
}

void Judge::is_blocked(Nanos time, Nanos asked) {
  blocked_since_ = world_.now();
  block_asked_ = asked;
  blocked_until_ = world_.now() + time - time / 100;
}

void Judge::is_on_hold(Nanos at_least, Nanos at_most, Nanos asked) {
  is_blocked(at_least, asked);
  held_until_ = world_.now() + at_most + at_most / 100;
  would_hold_until_ = std::max(would_hold_until_, held_until_);
}

/// Whoever is about to say so, or to say otherwise.
void Judge::is_unblocked() {
  blocked_until_ = 0;
  held_until_ = world_.now() + 120 * second;
}

void Judge::is_cleared() { blocked_until_ = 0; }

/// A replica that has taken over since may not have heard of it, nor a waiter whose connection has fallen silent.
void Judge::is_open_again(Nanos asked) {
  const bool may_be_unheard = std::any_of(plan_.faults.begin(), plan_.faults.end(), [](const FaultPlan& fault) {
    return fault.kind == FaultPlan::Kind::mute;
  });
  held_until_ = rewound_ >= asked || may_be_unheard ? would_hold_until_ : world_.now();
}

void Judge::is_extended(Number n, Nanos sent, Nanos believes_until) {
  all_[n].until = believes_until;
  if (sent > all_[n].marked && forgotten_ < 0 && rewound_ < 0 && !plan_.is_quorum())
    world_.accuse(all_[n].who + " was renewed after it was told to give up the lock");
  world_.tell(all_[n].who, fmt::format("renewed, until {:.6f}", static_cast<double>(believes_until) / 1e9));
}

void Judge::is_lost(Number n) {
  Acquisition& a = all_[n];
  world_.tell(a.who, "has lost the lock");
  const bool may = a.excused || weakened_ >= a.asked;
  if (believes(a) && !may)
    world_.accuse(a.who + " was told that it has lost the lock, for no reason");
}

void Judge::is_evicted(Number n) {
  Acquisition& a = all_[n];
  world_.tell(a.who, "is told to give up the lock");
  const auto replaces = [&](const Acquisition& other) { return other.client.replace && &other != &a; };
  const bool may =
      forced_ >= begin_of_levels(a) || (a.client.replace && std::any_of(all_.begin(), all_.end(), replaces));
  if (!may)
    world_.accuse(a.who + " was told to give up the lock, for no reason");
}

void Judge::stops(Number n) {
  Acquisition& a = all_[n];
  a.state = Acquisition::State::over;
  a.stopped = world_.now();
}

void Judge::stops_all(const std::string& token) {
  given_up_.insert(token);
  for (Number n = 0; n < all_.size(); ++n) {
    if (all_[n].token == token && all_[n].state == Acquisition::State::believes)
      stops(n);
  }
}

void Judge::gives_up(Number n, std::string how) {
  stops(n);
  world_.tell(all_[n].who, "releases: " + how);
  all_[n].how = std::move(how);
}

void Judge::gave_up(Number n, bool known, bool lost) {
  all_[n].released = known && !lost;
  world_.tell(all_[n].who,
              !known ? "does not know whether it has released"
              : lost ? "had lost the lock"
                     : "has released");
}

void Judge::dies(const std::string& who) {
  for (Number n = 0; n < all_.size(); ++n) {
    if (all_[n].who != who || all_[n].state == Acquisition::State::over)
      continue;
    all_[n].died = true;
    stops(n);
  }
}

/// Whether a script took the lock, which no keeper renews and no guard watches, or a run inside it.
bool Judge::is_script(const Acquisition& a) const {
  const ClientPlan& outer = a.client.inside ? plan_.clients[*a.client.inside] : a.client;
  return outer.kind == ClientPlan::Kind::acquire;
}

void Judge::forces(bool now) {
  forced_ = world_.now();
  if (now)
    forced_now_ = world_.now();
  for (Acquisition& a : all_) a.excused = a.excused || now || is_script(a);
}

void Judge::is_marked(long long fence) {
  for (Acquisition& a : all_) {
    if (a.fence == fence)
      a.marked = std::min(a.marked, world_.now());
  }
}

/// A quorum keeps its promises until a majority has lost its data, but a holder loses the lock if a majority does not
/// have it any more.
void Judge::loses_data(std::size_t host) {
  weakened_ = world_.now();
  forgetful_.insert(host);
  if (forgetful_.size() > plan_.hosts.size() / 2)
    forgets();
}

void Judge::fails_over() {
  weakened_ = world_.now();
  rewound_ = world_.now();
  held_until_ = std::max(held_until_, would_hold_until_);  // the replica may not have heard that a hold was ended
  for (Acquisition& a : all_) a.excused = a.excused || is_script(a);  // what renews by a token waits for no replica
  if (!plan_.confirms)
    forgets();
}

void Judge::forgets() {
  weakened_ = world_.now();
  forgotten_ = world_.now();
  for (Acquisition& a : all_) a.excused = true;
}

void Judge::ends(const Remains& remains) {
  if (remains.state != "free" || remains.waiting != 0)
    world_.accuse(fmt::format("when all had gone the lock was {}, and {} waited", remains.state, remains.waiting));
  for (const auto& [key, life] : remains.keys) {
    const bool was_crowd = is_of_crowd(key) && life <= day;
    if (!key.ends_with(":meta") && !key.ends_with(":history") && !was_crowd)
      world_.accuse("the key " + key + " was left");
  }
  if (forgotten_ >= 0 || rewound_ >= 0 || plan_.is_quorum())
    return;
  check_history(remains);
  check_memory(remains);
}

/// Whether a question of the same taker came so late that the lease was over: the server takes the grant for unused
/// then, since the answer may have been lost, and makes another one. It is that one which the taker releases.
bool Judge::was_granted_again(const Acquisition& a, const Remains& remains) const {
  const auto next = std::find_if(remains.holders.upper_bound(a.fence), remains.holders.end(), [&](const auto& line) {
    return line.second == a.who;
  });
  return !plan_.is_fair() && next != remains.holders.end() &&
         std::none_of(all_.begin(), all_.end(), [&](const Acquisition& other) { return other.fence == next->first; });
}

/// Every acquisition has one line that says how it ended, and there are no others.
void Judge::check_history(const Remains& remains) {
  std::map<long long, const Acquisition*> known;
  for (const Acquisition& a : all_) {
    if (a.fence == 0 || a.is_inner)
      continue;
    known[a.fence] = &a;
    const auto found = remains.history.find(a.fence);
    if (found == remains.history.end()) {
      if (grants_ < 90 && !was_granted_again(a, remains))
        world_.accuse(fmt::format("{} (fence {}) has no line of history", a.who, a.fence));
    } else if (found->second.size() != 1) {
      world_.accuse(fmt::format("{} (fence {}) has {} lines of history", a.who, a.fence, found->second.size()));
    } else if (a.released && !a.how.empty() && !was_broken(a) &&
               found->second[0].substr(0, 24) != a.how.substr(0, 24) &&
               !(found->second[0] == "died" && was_granted_again(a, remains))) {
      world_.accuse(
          fmt::format("{} (fence {}) ended with {}, but history says {}", a.who, a.fence, a.how, found->second[0]));
    }
  }
  for (const auto& [fence, ends] : remains.history) {
    const bool unheard = ends[0].starts_with("evicted") || ends[0].starts_with("replaced");  // before it was told
    if (plan_.is_fair() && !known.contains(fence) && !unheard)
      world_.accuse(fmt::format("there is a line of history with fence {}, which nobody had", fence));
  }
}

/// The counters fit the history, and what is remembered lives long enough.
void Judge::check_memory(const Remains& remains) {
  const auto counter = [&](const std::string& name) {
    const auto found = remains.counters.find(name);
    return found != remains.counters.end() ? found->second : 0;
  };
  long long lines = 0, lost = 0;
  for (const auto& [fence, ends] : remains.history) {
    ++lines;
    lost += ends[0] == "lost" || ends[0] == "died";
  }
  if (grants_ < 90 && (counter("lost") != lost || counter("acquired") + counter("waited") < lines))
    world_.accuse(fmt::format("the counters say {} + {} grants and {} lost, the history {} and {}",
                              counter("acquired"),
                              counter("waited"),
                              counter("lost"),
                              lines,
                              lost));
  if (plan_.is_fair() && grants_ == 0 && held_until_ == 0 && forced_ < 0 && !remains.keys.empty())
    world_.accuse("there is a key, although nobody had the lock");
  if (remains.skipped > 0 && remains.last_skipped.find(",client") == std::string::npos)
    world_.accuse("it is not told who left last without the lock");
  if (plan_.is_fair() && (remains.skipped > turned_away_ || (remains.skipped < noted_ && forced_ < 0)))
    world_.accuse(fmt::format(
        "the counters say {} left without the lock, but {} of {} did", remains.skipped, noted_, turned_away_));
  const bool for_once = std::any_of(
      all_.begin(), all_.end(), [](const Acquisition& a) { return a.fence != 0 && !a.client.once.empty(); });
  for (const auto& [key, life] : remains.keys) {
    if (life < (for_once && key.ends_with(":meta") ? 399 : 29) * day && !is_of_crowd(key))
      world_.accuse(fmt::format("the key {} lives for {} more days only", key, life / day));
  }
}

}  // namespace sim
