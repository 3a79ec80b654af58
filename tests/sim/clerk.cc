#include "clerk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "base/sha1.h"
#include "lock/name.h"
#include "lock/scripts.h"

namespace sim {
namespace {

constexpr long long minute = 60'000, day = 86'400'000;  // ms
constexpr long long shortest_grant = 5000;
constexpr std::size_t level_key = 6, token_key = 7;

std::string verb_of(const Words& command) {
  if (!command[0].starts_with("EVAL"))
    return {};
  const std::string& digest = command[0] == "EVALSHA" ? command[1] : digest_of(command[1]);
  for (const rlock::lock::Script* script : rlock::lock::scripts::all) {
    if (script->sha1 == digest)
      return std::string{script->name};
  }
  return {};
}

/// Whether a success makes a run unnecessary that asks with these extras, and has asked since then.
bool suffices(const Books& books, std::string_view extras, long long since, long long now) {
  const std::string once = extra(extras, "once"), per = extra(extras, "per");
  const auto successes = books.successes();
  return (!once.empty() || !per.empty()) &&
         std::any_of(successes.begin(), successes.end(), [&](const Books::Success& s) {
           const bool is_last = &s == successes.data();
           return (once.empty() || (s.id == once && (is_last || (s.ended >= since && s.ended <= now)))) &&
                  (per.empty() || std::abs(now - s.granted) < std::atoll(per.c_str()));
         });
}

/// Until when nobody is granted the lock because that run has failed; its minimum hold may end later.
long long bar(const Books::Record& r, long long now) {
  const std::string until = extra(r.tail, "bar");
  return r.expires > now || extra(r.tail, "failed").empty() ? 0 : until.empty() ? r.cools : std::atoll(until.c_str());
}

bool is_eviction(const std::string& how) { return how.starts_with("evicted") || how.starts_with("replaced"); }

}  // namespace

Clerk::Clerk(World& world, const Redis& redis, std::string server, bool in_quorum)
    : world_(world),
      redis_(redis),
      server_(std::move(server)),
      in_quorum_(in_quorum),
      books_keys_(rlock::lock::LockName{"rlock:", "k"}.keys()) {}

void Clerk::reads(const Words& command) {
  verb_ = verb_of(command);
  if (verb_.empty())
    return;
  const auto keys = command.begin() + 3, words = keys + std::atol(command[2].c_str());
  keys_.assign(keys, words);
  words_.assign(words, command.end());
  now_ = redis_.now();
  before_ = Books::read(redis_, books_keys_);
  level_end_before_ = remembered(level_key);
  token_end_before_ = remembered(token_key);
}

void Clerk::audits(const Value& reply) {
  if (verb_.empty())
    return;
  reply_ = &reply;
  books_ = Books::read(redis_, books_keys_);
  check_lives();
  if (reply.is_error()) {
    insist(books_.says_the_same(before_), "has failed half-way");
    insist(redis_.is_full || reply.text.starts_with("NOSCRIPT"), "has failed");
    return;
  }
  if (!books_.garbled.empty())
    accuse("left what nobody can read: " + books_.garbled);
  fresh_.clear();
  for (const auto& [token, r] : books_.records) {
    if (r.expires > now_ && before_.holder(token, now_) == nullptr)
      fresh_.push_back(token);
  }
  check_holders();
  check_queue();
  check_memory();
  check_grants();
  check_news();
  check_leavers();
  check_departures();
  check_endings();
  check_counters();
  check_failures();
  check_crowd();
  check_successes();
  check_served();
  check_answer();
}

void Clerk::accuse(const std::string& what) {
  world_.accuse(fmt::format("{}: {} {}", server_, verb_.empty() ? "books" : verb_, what));
}

const std::string& Clerk::word(std::size_t i) const {
  static const std::string none;
  return i < words_.size() ? words_[i] : none;
}

const std::string& Clerk::said(std::size_t i) const {
  static const std::string none;
  return i < reply_->elements.size() ? reply_->elements[i].text : none;
}

/// Whether somebody is to be forced to give up the lock.
bool Clerk::is_named(long long fence) const {
  return is("force") && std::find(words_.begin() + 2, words_.end(), std::to_string(fence)) != words_.end();
}

std::string Clerk::option(std::string_view name) const {
  for (std::size_t i = 9; i < words_.size(); ++i) {
    if (words_[i].starts_with(name) && words_[i].substr(name.size()).starts_with('='))
      return words_[i].substr(name.size() + 1);
  }
  return {};
}

std::string Clerk::remembered(std::size_t key) const {
  const auto found = key < keys_.size() ? redis_.data.find(keys_[key]) : redis_.data.end();
  if (found == redis_.data.end() || found->second.expires <= now_)
    return {};
  const auto* text = std::get_if<std::string>(&found->second.value);
  return text != nullptr ? *text : "";
}

bool Clerk::was_published(const std::string& level, std::string_view beginning, std::string_view end) const {
  return std::any_of(redis_.published.begin(), redis_.published.end(), [&](const auto& message) {
    return message.first.ends_with("wake:" + level) && message.second.starts_with(beginning) &&
           message.second.ends_with(end);
  });
}

std::string Clerk::me() const { return option("waiter").empty() ? word(0) : option("waiter"); }

bool Clerk::is_newest() const { return is("acquire") && !(option("latest").empty() && option("replace").empty()); }

/// What the server can know of that: somebody listens, or has said until when it will ask again.
bool Clerk::is_alive(const Books::Waiter& waiter) const {
  if (waiter.alive < now_)
    return false;
  if (!extra(waiter.tail, "poll").empty() || redis_.denied.contains("PUBSUB"))
    return true;
  const std::string channel = keys_[1].substr(0, keys_[1].size() - 5) + "wake:" + waiter.level;
  const auto found = redis_.subscribers.find(channel);
  return found != redis_.subscribers.end() && !found->second.empty();
}

/// Whether nobody gets the lock for a while, since a run has failed.
bool Clerk::is_barred() const {
  return std::any_of(
      books_.records.begin(), books_.records.end(), [&](const auto& pair) { return bar(pair.second, now_) > now_; });
}

long long Clerk::seats_taken(const Books& books) const {
  return std::count_if(
      books.records.begin(), books.records.end(), [&](const auto& pair) { return pair.second.until() > now_; });
}

// ---- the books by themselves

/// Nothing stays for ever, and nothing goes too early.
void Clerk::check_lives() {
  for (const auto& [key, entry] : redis_.data) {
    const bool was_robbed = before_.expiries.contains(key) && before_.expiries.at(key) < 0;  // by somebody else
    if (entry.expires < 0 && !was_robbed)
      accuse("left the key " + key + " without expiry");
    if (key.find(":ended:") != std::string::npos && entry.expires > now_ + minute && !has_doubts_)
      accuse(fmt::format("remembers {} for more than a minute", key));
  }
  const auto life = [&](std::size_t key) {
    const auto found = books_.expiries.find(books_keys_[key]);
    return found != books_.expiries.end() ? found->second - now_ : 60 * day;
  };
  long long needed = 29 * day;
  for (const Books::Success& s : books_.successes()) needed = s.id.empty() ? needed : 399 * day;
  insist(has_doubts_ || life(3) >= std::max(needed, books_.held_back_until() - now_), "forgets the lock too early");
  insist(has_doubts_ || life(4) >= 29 * day, "forgets the history too early");
}

/// Those who have the lock have it in one mode, with a seat for each.
void Clerk::check_holders() {
  const Books& b = books_;
  std::set<long long> slots, fences;
  long long last = 0, holders = 0;
  for (const auto& [token, r] : b.records) {
    if (r.until() <= now_)
      continue;
    last = std::max(last, r.until());
    holders += r.levels != "ended";
    insist(!b.is_foreign && b.capacity.has_value(), "left a holder whom nobody can see");
    const bool has_own = r.levels == "ended" || slots.insert(r.slot).second;  // such a one bars all others
    insist(b.capacity <= 1 || (has_own && r.slot < b.capacity), "gave a slot twice, or one too many");
    insist(b.capacity > 1 || r.slot == 0, "gave a slot where there are none");
    insist(r.fence <= b.floor, "has given a fence that it does not remember");
    // A quorum may choose another fence until somebody is told it; the judge compares those.
    insist(r.levels == "ended" || in_quorum_ || fences.insert(r.fence).second, "lets two have the same fence");
    const bool is_known = !in_quorum_ || !extra(r.tail, "settled").empty();
    const bool is_written = before_.record(token) == nullptr || !(*before_.record(token) == r);
    const bool is_bounded = r.expires <= now_ + r.ttl && r.cools <= now_ + r.hold;
    const bool reads_all = (is("acquire") && (was_told("busy") || was_told("granted"))) || is("cancel") ||
                           (is("hold") && before_.recall("hold") != books_.recall("hold"));
    const bool is_crowd = redis_.is_hasty && b.capacity != 1 && before_.seen <= now_;
    const bool is_late = is("release") && was_told("lost");  // the next to read it believes no more than was asked for
    insist(is_bounded || is_late || !(is_written || (reads_all && !is_crowd)),
           "lets somebody hold for longer than was asked for");
    if (r.expires <= now_ || b.running.size() >= 15 || !is_known || has_doubts_)
      continue;
    const auto found = b.running.find(token);
    insist(found != b.running.end() && found->second.fence == r.fence && found->second.acquired == r.acquired &&
               found->second.tail == r.tail,
           "does not know who runs");
  }
  insist(!is_barred() || !b.has_seats || is("renew") || has_doubts_,
         "has a crowd overlook the failure after which it cools");
  insist(b.capacity != 1 || holders <= 1, "lets two hold");
  const long long end = last == 0 ? 0 : b.expiries.at(books_keys_[0]);
  insist(end < 0 || end >= last, "lets the key end before its last holder");
}

void Clerk::check_queue() {
  for (const Books::Waiter& w : books_.queue) {
    const std::string& token = w.token;
    insist(doubts_tickets_ || static_cast<long long>(w.score) == w.ticket,
           "has a waiter whose ticket is not its place");
    insist(w.alive <= w.asked + minute + 1000, "lets a waiter sleep for more than a minute");
    insist(in_quorum_ || books_.holder(token, now_) == nullptr || before_.holder(token, now_) != nullptr,
           "lets a holder wait");
  }
}

/// What is remembered does not grow without end.
void Clerk::check_memory() {
  static const std::set<std::string, std::less<>> known{"state",
                                                        "running",
                                                        "success",
                                                        "hold",
                                                        "ticket",
                                                        "died",
                                                        "newest",
                                                        "superseded",
                                                        "memory",
                                                        "failures",
                                                        "holds",
                                                        "skipped"};
  for (const auto& [field, text] : books_.memory) {
    if (!known.contains(field))
      accuse("remembers something new: " + field);
  }
  const auto lines = [&](std::string_view field) {
    const std::string& text = books_.recall(field);
    return std::count(text.begin(), text.end(), '\n') + 1;
  };
  insist(lines("running") <= 16 && lines("success") <= 28 && lines("died") <= 8 && lines("failures") <= 200 &&
             lines("holds") <= 16,
         "remembers more and more");
  std::set<std::string> holds;
  for (const std::string& line : split(books_.recall("holds"), '\n'))
    insist(holds.insert(line.substr(0, line.find(' '))).second, "takes a repetition for another hold");
  insist(split(books_.recall("superseded")).size() <= 128, "remembers ever more that were superseded");
  insist(books_.history.size() <= 103, "keeps ever more history");
  insist(books_.floor >= before_.floor, "has forgotten a fence");
}

// ---- what has changed

void Clerk::check_grants() {
  const bool may_grant = is("acquire") || is("release") || is("cancel") || is("force") || is("hold");
  insist(fresh_.empty() || may_grant, "grants the lock, which is not its business");
  insist(!redis_.is_hasty || fresh_.size() <= (is("acquire") ? 9 : 4), "serves too many at once");
  for (const std::string& token : fresh_) check_grant(token, books_.records.at(token));
  for (const auto& [token, r] : books_.records) {
    const Books::Record* old = before_.holder(token, now_);
    if (old == nullptr || r.expires <= now_)
      continue;
    insist(old->fence == r.fence || is("settle") || (is("acquire") && is_own(token)), "changes somebody's fence");
    insist(r.fence >= old->fence || extra(old->tail, "settled").empty(), "lowers a fence that was settled");
    insist(old->slot == r.slot, "changes somebody's slot");
    const bool may_shorten = is_own(token) && (is("release") || is("cancel"));
    insist(r.expires >= old->expires || may_shorten || has_doubts_, "shortens somebody's lease");
    const bool is_evicted = !extra(r.tail, "evict").empty() && extra(old->tail, "evict").empty();
    insist(!is_evicted || is("force") || (is("acquire") && !extra(old->tail, "replace").empty()),
           "evicts somebody for no reason");
    insist(!is_evicted || is("acquire") || is_named(old->fence), "evicts somebody who was not named");
  }
}

void Clerk::check_grant(const std::string& token, const Books::Record& r) {
  const bool is_asker = is("acquire") && is_own(token);
  const bool is_restored = is_asker && word(4) == "restore";
  const Books::Waiter* w = before_.waiter(token);
  insist(is_asker || (w != nullptr && !in_quorum_), "grants the lock to somebody who does not wait");
  insist(is_asker || w == nullptr || is_alive(*w), "hands over the lock to the dead");
  insist(r.fence > before_.floor, "gives a fence that is not new");
  insist(books_.held_back_until() <= now_ || is_restored, "grants a lock that is on hold");
  insist(r.acquired == (is_restored ? born() : now_), "dates a grant wrongly");
  insist(is_restored || r.expires <= now_ + shortest_grant, "grants for too long without a renewal");
  insist(before_.ending(r.fence) == nullptr, "grants what has ended");
  insist(!before_.is_foreign || is("force"), "grants another program's lock");
  insist(books_.waiter(token) == nullptr, "leaves a new holder in the queue");
  const long long hold = is_asker ? std::atoll(option("hold").c_str()) : w != nullptr ? w->hold : 0;
  const long long capacity = is_asker ? number(2) : w != nullptr ? w->capacity : 0;
  const long long ttl = is_asker ? number(3) : w != nullptr ? w->ttl : 0;
  const bool is_kept = is_asker ? !option("kept").empty() : w != nullptr && w->kept == 1;
  insist(r.hold == hold && r.ttl == ttl && is_kept == (r.kept == 1) && books_.capacity == capacity,
         "grants what was not asked for");
  insist(hold > 0 ? r.cools == r.acquired + hold : r.cools == 0, "makes a wrong minimum hold");
  for (long long slot = 0; slot < r.slot && !redis_.is_hasty; ++slot) {
    const auto has_it = [&](const auto& pair) { return pair.second.slot == slot; };
    insist(std::any_of(books_.records.begin(), books_.records.end(), has_it), "does not give the first free slot");
  }
  insist(!is_exhausted(r.tail) || is_restored, "lets somebody try once more who has tried often enough");
  if (w != nullptr && !is_asker)
    insist(r.tail == w->tail && r.levels == w->level && r.waited == std::max(0LL, now_ - w->born),
           "hands over what was not asked for");
  for (const auto& [other, old] : before_.records) {
    const Books::Record* still = books_.record(other);
    const bool is_barred = bar(old, now_) > now_ && still != nullptr && bar(*still, now_) > now_;
    insist(!is_barred || is_restored || has_doubts_, "grants a lock that cools after a failure");
  }
  if (is_restored)
    return;
  const long long born = is_asker ? now_ - number(6) : w != nullptr ? w->born : 0;
  insist(!suffices(is_asker ? before_ : books_, r.tail, born, now_), "lets somebody do what has been done");
  check_precedence(token);
}

/// Nobody gets the lock before those who are ahead in the queue, alive, and still have something to do.
void Clerk::check_precedence(const std::string& token) {
  const Books::Record& r = books_.records.at(token);
  if (!extra(r.tail, "first").empty() || !extra(r.tail, "latest").empty() || !extra(r.tail, "replace").empty())
    return;
  const Books::Waiter* place = before_.waiter(is_own(token) ? me() : token);
  const double fresh = in_quorum_ ? static_cast<double>(born()) * 1000 - 1000 : 1e17;
  if (has_doubts_)
    return;  // a place may be from a time that is still to come
  const double named = in_quorum_ || word(5).empty() ? fresh : std::atof(word(5).c_str());
  const double ticket = place != nullptr ? place->score : named;
  for (const Books::Waiter& w : books_.queue) {
    const bool may_share = in_quorum_ && w.capacity == 0 && books_.capacity == 0;
    if (before_.waiter(w.token) != nullptr && w.score < ticket && is_alive(w) && !may_share && w.token != me() &&
        !suffices(books_, w.tail, w.born, now_))
      accuse("grants the lock past somebody who is ahead in the queue");
  }
}

/// Whoever is concerned is told.
void Clerk::check_news() {
  for (const std::string& token : fresh_) {
    const Books::Record& r = books_.records.at(token);
    const std::string proof = rlock::sha1_hex(fmt::format("{}:{}", token, r.fence));
    insist(is_own(token) || was_published(r.levels, fmt::format("granted {} {} ", r.fence, r.slot), proof),
           "hands over the lock without a word");
  }
  for (const auto& [token, old] : before_.records) {
    const Books::Record* r = books_.record(token);
    const bool is_evicted = r != nullptr && !extra(r->tail, "evict").empty() && extra(old.tail, "evict").empty();
    const bool is_given_up = releases_all() && is_own(token) && old.expires > now_;
    for (const std::string& level : old.level_names()) {
      insist(!is_evicted || was_published(level, "evicted"), "evicts without a word");
      insist(!is_given_up || was_published(level, "released"), "gives up for others without a word");
    }
  }
}

/// Nobody leaves the queue without a reason, and without being told.
void Clerk::check_leavers() {
  const std::string leaver = is("cancel") && words_.size() > 2 ? word(2) : is("settle") ? word(2) : me();
  for (const Books::Waiter& w : before_.queue) {
    if (w.token == leaver || books_.waiter(w.token) != nullptr || w.alive < now_)
      continue;
    insist(books_.holder(w.token, now_) != nullptr || was_published(w.level, ""), "drops a waiter without a word");
    const bool is_done = suffices(books_, w.tail, w.born, now_) || !extra(w.tail, "attempts").empty();
    insist(books_.holder(w.token, now_) != nullptr || !is_alive(w) || is_done ||
               (is_newest() && w.token == before_.newest().token),
           "drops a waiter that is alive");
  }
}

/// Whoever holds, or cools, goes on with that unless this verb ends it.
void Clerk::check_departures() {
  if (has_doubts_)
    return;
  for (const auto& [token, old] : before_.records) {
    const Books::Record* r = books_.record(token);
    const bool was_named = is_named(old.fence);
    if (old.expires > now_ && books_.holder(token, now_) == nullptr)
      insist(was_named || (is_own(token) && (is("release") || is("cancel"))), "has taken the lock from its holder");
    const bool was_unused = is_own(token) && (is("acquire") || (is("cancel") && level_end_before_.empty()));
    const bool may_free = was_named || was_unused || (is("release") && bar(old, now_) > 0);
    if (old.expires <= now_ && old.cools > now_)
      insist(may_free || (r != nullptr && r->cools >= old.cools), "ends a pause too early");
    if (old.expires > now_ && old.cools > now_ && is("release"))
      insist(r != nullptr && r->cools >= old.cools, "ends the minimum hold");
  }
}

/// How an acquisition has ended that is not in progress any more.
std::string Clerk::expected_end(const std::string& token, const std::string& tail, const std::string& levels) const {
  if (const std::string first = extra(tail, "end"); !first.empty()) {
    const std::size_t slash = first.find('/');
    std::string cause = first.substr(slash + 1);
    if (cause.ends_with('/'))
      cause.pop_back();
    if (!cause.empty() || first[0] != '-')
      return cause.empty() ? first.substr(0, slash) : cause;
  } else {
    const bool is_told = is("release") && is_own(token) &&
                         (releases_all() || levels.empty() || levels.substr(0, levels.find_first_of(":,")) == word(1));
    if (is_told && !word(3).empty())
      return word(3);
    if (is_told && word(2) != "-")
      return word(2);
    if (const std::string evicted = extra(tail, "evict"); !evicted.empty())
      return (evicted.starts_with("forced") ? "evicted" : "replaced") + evicted.substr(evicted.find(','));
    if (!is_told)
      return "died";
  }
  return "released";
}

/// Each acquisition that has ended has one line of history, which says how, and there are no others.
void Clerk::check_endings() {
  if (has_doubts_)
    return;
  const bool is_grant = std::any_of(fresh_.begin(), fresh_.end(), [&](const auto& token) { return !is_own(token); });
  for (const auto& [token, run] : books_.running) {
    const bool looks = is("status") || is("log") || (is("force") && !before_.is_foreign);
    const bool must_notice = looks || is_grant;
    insist(!must_notice || redis_.is_full || books_.holder(token, now_) != nullptr, "has not noticed a death");
  }
  for (const auto& [token, run] : before_.running) {
    const auto still = books_.running.find(token);
    if (still != books_.running.end() && still->second.fence == run.fence)
      continue;
    const Books::Record* r = before_.holder(token, now_);
    const bool is_again = still != books_.running.end();  // it has had a grant of which it never heard, and has another
    const bool was_unused = is_again || (is_own(token) && (is("acquire") || is("settle") || is("cancel")));
    const Books::Ending* end = books_.ending(run.fence);
    if (in_quorum_ && before_.ending(run.fence) != nullptr)
      continue;  // it was taken for dead here while the others knew better, as whoever reads the history will
    insist(end != nullptr || was_unused, "forgets how somebody has ended");
    if (end == nullptr || was_unused)
      continue;
    // What has died before is not evicted, nor a run that has ended while others inside it go on.
    const bool is_taken = is_named(run.fence) && r != nullptr && extra(r->tail, "end").empty();
    const std::string how =
        is_taken ? "evicted," + word(1) : expected_end(token, run.tail, r != nullptr ? r->levels : "");
    const bool is_lost = is("release") && is_own(token) && r == nullptr;  // it says so if it knows no better
    if (end->how.substr(0, 40) != how.substr(0, 40) && !is_lost)
      accuse(fmt::format("says {}, but {} was the end", end->how, how));
    insist(end->acquired == run.acquired && end->capacity == run.capacity && end->waited == run.waited,
           "tells a wrong history");
  }
  std::set<long long> fences;
  for (const Books::Ending& e : books_.history) {
    insist(fences.insert(e.fence).second || in_quorum_, "tells the same end twice");
    const Books::Ending* old = before_.ending(e.fence);
    insist(old == nullptr || *old == e || is("release") || in_quorum_, "tells another history");
    insist(e.fence <= books_.floor, "tells the end of what was not granted");
    insist(e.ended >= e.acquired && e.ended <= now_, "dates an end wrongly");
    if (is_eviction(e.how))
      insist(e.how.find("%20pid%20") != std::string::npos, "does not tell who has evicted");
  }
}

void Clerk::check_counters() {
  const auto losses = [](const Books& books) {
    return std::count_if(books.history.begin(), books.history.end(), [](const Books::Ending& e) {
      return e.how == "lost" || e.how == "died";
    });
  };
  const auto evicted = std::count_if(before_.records.begin(), before_.records.end(), [&](const auto& pair) {
    const auto& [token, old] = pair;
    const Books::Record* r = books_.holder(token, now_);
    const bool may = old.expires > now_ && extra(old.tail, "evict").empty();
    return may && (r != nullptr ? !extra(r->tail, "evict").empty() : is_named(old.fence));
  });
  const Books &a = before_, &b = books_;
  // One of several servers counts a grant when a majority has agreed on its fence.
  const Books::Record* unsettled = before_.holder(word(0), now_);
  const bool is_settled_first = is("settle") && was_told("settled") && is_new_settlement() && unsettled != nullptr &&
                                extra(unsettled->tail, "settled").empty();
  const auto granted = in_quorum_ ? static_cast<long long>(is_settled_first) : static_cast<long long>(fresh_.size());
  insist(has_doubts_ || b.grants - a.grants == granted, "counts its grants wrongly");
  if (!in_quorum_ && a.history.size() < 100)
    insist(b.lost - a.lost == losses(b) - losses(a), "counts wrongly how many were lost");
  insist(b.evicted - a.evicted == evicted || a.is_foreign, "counts wrongly who was evicted");
  static const std::set<std::string, std::less<>> leaving{"done", "superseded", "full", "attempts"};
  const bool waits = is("acquire") && word(4) == "queue";
  const bool is_held = is("acquire") && (was_told("busy") || was_told("hold") || was_told("foreign"));
  // A round that failed cancels its level while the wait goes on.
  const bool may_be_over = level_end_before_.empty() || level_end_before_ == "c";
  const bool leaves = (is("acquire") && leaving.contains(said(0))) || (is_held && !waits) ||
                      (is("cancel") && !word(3).empty() && may_be_over);
  const bool is_used = !a.recall("state").empty();
  const long long more = b.skipped() - a.skipped();
  const bool is_first_use = !is_used && !fresh_.empty();  // it has handed over what it has just forgotten
  insist(more == (leaves && is_used) || is_first_use || redis_.is_full, "counts wrongly who left without the lock");
  insist(b.recall("skipped").empty() || !b.recall("state").empty(), "remembers a lock that nobody has used");
  const std::string last = extra(b.recall("skipped"), "last");
  insist(last.empty() || last.find(",client") != std::string::npos, "does not tell who left last without the lock");
}

/// Whether as many attempts have failed as somebody with these extras allows.
bool Clerk::is_exhausted(const std::string& extras) const {
  const std::string most = extra(extras, "attempts"), id = extra(extras, "once"), per = extra(extras, "per");
  const auto failures = books_.failures();
  const auto successes = books_.successes();
  // If the clock was set back since the last success, the fences tell what came later.
  const auto is_later = [&](const Books::Failure& f) {
    return successes.empty() || f.ended > successes[0].ended ||
           (successes[0].ended > now_ && f.fence >= successes[0].granted * 1000);
  };
  const auto count = std::count_if(failures.begin(), failures.end(), [&](const Books::Failure& f) {
    return id.empty() ? std::abs(now_ - f.acquired) < std::atoll(per.c_str()) && is_later(f) : f.id == id;
  });
  return !most.empty() && count >= std::atoll(most.c_str());
}

/// Each run with --backoff, --once or --once-per that fails is noted.
void Clerk::check_failures() {
  const auto failures = books_.failures();
  for (const auto& [token, r] : books_.records) {
    const Books::Record* old = before_.record(token);
    if (bar(r, now_) > now_ && (old == nullptr || extra(old->tail, "failed").empty()))
      check_cooling(token, r);
  }
  if (!is("release") || !is_own(word(0)) || was_told("lost") || word(4) == "1" || has_doubts_)
    return;
  const Books::Record* old = before_.holder(word(0), now_);
  const Books::Ending* end = old != nullptr ? books_.ending(old->fence) : nullptr;
  if (end == nullptr || before_.ending(old->fence) != nullptr || end->how == "0" || !std::isdigit(end->how[0]) ||
      !extra(old->tail, "end").empty())
    return;
  const std::string backoff = extra(old->tail, "backoff");
  const bool is_noted =
      std::any_of(failures.begin(), failures.end(), [&](const Books::Failure& f) { return f.fence == old->fence; });
  insist(is_noted || (backoff + extra(old->tail, "once") + extra(old->tail, "per")).empty(), "forgets a failure");
  const Books::Record* r = books_.record(word(0));
  insist(backoff.empty() || (r != nullptr && bar(*r, now_) > now_), "does not cool after a failure");
}

/// It cools for longer after each failure in a row.
void Clerk::check_cooling(const std::string& token, const Books::Record& r) {
  const auto failures = books_.failures();
  const auto successes = books_.successes();
  const Books::Ending* end = books_.ending(r.fence);
  const std::string backoff = extra(r.tail, "backoff");
  const bool is_clear = before_.recall("success") == books_.recall("success") && !in_quorum_ && !has_doubts_;
  if (failures.empty() || failures[0].fence != r.fence || end == nullptr || backoff.empty() || !is_clear)
    return;
  const auto row = std::count_if(failures.begin(), failures.end(), [&](const Books::Failure& f) {
    return successes.empty() || f.ended > successes[0].ended;
  });
  const double first = std::atof(backoff.c_str()), most = std::atof(backoff.c_str() + backoff.find('-') + 1);
  const double delay = std::min(first * std::pow(2, std::max<double>(1, static_cast<double>(row)) - 1), most);
  const double until = static_cast<double>(std::atoll(extra(r.tail, "bar").c_str()));
  if (std::abs(until - (static_cast<double>(end->ended) + delay)) > 1)
    accuse(fmt::format("lets {} cool until {}, but {} failed in a row, the last at {}", token, until, row, end->ended));
}

/// Whether the seats and the slots of a crowd fit its records. Redis may have lost the seats.
bool Clerk::is_crowd_in_order() const {
  const auto seats = redis_.data.find(books_keys_[5]);
  const auto* ranking = seats != redis_.data.end() && seats->second.expires > now_
                            ? std::get_if<Redis::Ranking>(&seats->second.value)
                            : nullptr;
  return ranking != nullptr && ranking->size() == books_.records.size();
}

/// What a crowd has beside its records.
void Clerk::check_crowd() {
  const bool had_lock = before_.expiries.contains(books_keys_[0]);
  insist(books_.has_seats || !before_.has_seats || !had_lock || !redis_.data.contains(books_keys_[5]),
         "leaves the seats of a crowd that has gone");
  const bool is_written = !(before_.records == books_.records) && !is("renew");
  // Settle removes no record that has run out, so it may make the seats anew for the others only; the next verb sees
  // that.
  const bool is_settled_anew = is("settle") && !before_.has_seats;
  // While it cools after a failure nobody keeps its seats, and when it is small then nobody makes them anew.
  const bool is_small = books_.records.size() <= 1;
  insist(!books_.has_seats || !is_written || is_settled_anew || is_small || is_crowd_in_order(),
         "leaves a crowd without its seats");
  if (books_.has_seats && is_written && books_.capacity > 1) {
    std::string slots(books_.slots.size(), '0');
    for (const auto& [token, r] : books_.records) {
      if (static_cast<std::size_t>(r.slot) < slots.size())
        slots[static_cast<std::size_t>(r.slot)] = '1';
    }
    insist(slots == books_.slots, "marks slots wrongly");
  }
  insist(!before_.has_seats || !books_.has_seats || books_.seen >= before_.seen || !is("renew"),
         "hides that the clock was set back");
}

/// A success is one that history tells, too.
void Clerk::check_successes() {
  if (in_quorum_ || before_.recall("success") == books_.recall("success"))
    return;
  const auto old = before_.successes(), all = books_.successes();
  for (const Books::Success& s : old) {
    const auto is_newer = [&](const auto& other) {
      return other.id == s.id && other.ended >= s.ended && other.granted >= s.granted;
    };
    insist(has_doubts_ || all.size() >= 8 || std::any_of(all.begin(), all.end(), is_newer), "forgets a success");
  }
  for (const Books::Success& s : all) {
    const auto is_same = [&](const auto& other) { return other.granted == s.granted && other.ended == s.ended; };
    if (std::any_of(old.begin(), old.end(), is_same))
      continue;
    const bool is_told = std::any_of(books_.history.begin(), books_.history.end(), [&](const Books::Ending& e) {
      return e.how == "0" && e.acquired == s.granted && e.ended == s.ended;
    });
    insist(is_told, "remembers a success that was none");
  }
}

/// Whoever is first in the queue, alive and has a seat, has been given it.
void Clerk::check_served() {
  const bool serves = is("release") || is("cancel") || is("hold");
  const bool is_repeated =
      !level_end_before_.empty() || !token_end_before_.empty() || (is("hold") && before_.held_back_until() <= now_);
  if (in_quorum_ || redis_.is_hasty || !serves || is_repeated || books_.queue.empty() || books_.is_foreign ||
      books_.held_back_until() > now_ || was_told("lost") || was_told("kept") || was_told("none"))
    return;
  const Books::Waiter& w = books_.queue.front();
  insist(is_alive(w), "leaves a dead waiter at the head of the queue");
  insist(was_published(w.level, ""), "does not tell the first in the queue when to look");
  const Books::Record* old = before_.record(word(0));
  const bool tells = is("release") && old != nullptr && before_.recall("success") != books_.recall("success") &&
                     !(extra(old->tail, "once").empty() && extra(old->tail, "per").empty());
  for (const Books::Waiter& other : books_.queue)
    insist(!tells || !suffices(books_, other.tail, other.born, now_), "lets somebody wait for what is done");
  const long long taken = seats_taken(books_);
  const bool fits = taken == 0 || (books_.capacity == w.capacity && (w.capacity == 0 || taken < w.capacity));
  insist(is_barred() || !fits, "leaves somebody waiting who could have the lock");
}

// ---- what was answered

void Clerk::check_answer() {
  if (is("acquire"))
    check_acquire();
  if (is("release"))
    check_release();
  if (is("renew"))
    check_renewal();
  if (is("cancel"))
    check_cancel();
  if (is("settle"))
    check_settlement();
  if (is("force"))
    check_force();
  if (is("hold"))
    check_hold();
}

void Clerk::check_acquire() {
  const Books::Record* r = books_.holder(word(0), now_);
  const bool is_young = now_ - redis_.started / 1000 < number(8);
  insist(!in_quorum_ || !is_young || has_doubts_ || was_told("young"), "votes although it may have forgotten a lock");
  const long long taken = seats_taken(before_);
  const bool has_room = (taken == 0 && !before_.is_foreign) || (before_.capacity == number(2) && number(2) == 0);
  const bool is_cut = redis_.is_hasty && books_.records.size() < before_.records.size();  // not all the dead were seen
  insist(word(4) != "restore" || !has_room || is_cut || !was_told("busy"), "does not give back what it has lost");
  check_newest();
  if (!was_told("granted")) {
    insist(r == nullptr || before_.holder(word(0), now_) != nullptr, "grants the lock, but says otherwise");
    check_refusal();
    return;
  }
  if (r == nullptr)
    return accuse("says that somebody has the lock who has not");
  const auto levels = r->level_names();
  insist(std::find(levels.begin(), levels.end(), word(1)) != levels.end(), "grants the lock to no level");
  insist(level_end_before_.empty(), "grants the lock to a level that has ended");
  const Books::Record* before = before_.holder(word(0), now_);
  const auto ends = r->level_ends();
  const bool is_added = before != nullptr && before->levels.find(word(1)) == std::string::npos;
  for (std::size_t i = 1; is_added && i < ends.size(); ++i)  // the first has made the record
    insist(ends[i] > now_, "keeps levels that were killed");
  const bool is_unsettled = in_quorum_ && word(4) == "reenter" && extra(r->tail, "settled").empty();
  insist(said_number(1) == (is_unsettled ? 0 : r->fence), "tells a wrong fence");
  insist(said_number(2) == r->slot, "tells a wrong slot");
  insist(said_number(3) <= r->expires - now_, "tells a lease that is too long");
  const Books::Record* old = before_.holder(word(0), now_);
  insist(old == nullptr || extra(old->tail, "evict").empty(), "lets somebody in again who must go");
  const long long hold = std::atoll(option("hold").c_str());
  insist(has_doubts_ || old == nullptr || r->cools == std::max(old->cools, hold > 0 ? born() + hold : 0),
         "makes another minimum hold");
  check_forgotten();
}

/// Of those with --latest and --replace one waits at most, and that is the newest.
void Clerk::check_newest() {
  const Books::Newest newest = before_.newest();
  const Books::Waiter* old = before_.waiter(newest.token);
  if (!is_newest() || newest.token == me() || newest.token.empty())
    return;
  const bool is_ours = before_.recall("newest").ends_with(' ' + word(7));  // an earlier claim that was not given back
  const bool competes = (word(4) == "queue" || word(4) == "once") && !is_ours;
  const bool gets_on = was_told("granted") || was_told("busy");
  insist(
      !competes || !gets_on || before_.holder(word(0), now_) != nullptr || newest.born <= born() || newest.born > now_,
      "lets an older one take the place of a newer one");
  if (old == nullptr || !is_alive(*old) || suffices(books_, old->tail, old->born, now_) || is_exhausted(old->tail) ||
      old->level != newest.level || word(4) != "queue" || !was_told("busy"))
    return;
  const Books::Waiter* w = books_.waiter(me());
  insist(books_.waiter(newest.token) == nullptr && was_published(newest.level, "superseded"),
         "leaves in the queue who was superseded");
  const bool may_inherit = option("first").empty() || !extra(old->tail, "first").empty();
  insist(in_quorum_ || !word(5).empty() || !may_inherit || before_.waiter(me()) != nullptr ||
             (w != nullptr && w->ticket == old->ticket),
         "makes a newer one wait anew");
}

/// The others that wait may have been forgotten with whoever asks again, and hear that they are to ask, too.
void Clerk::check_forgotten() {
  const bool may_ask = !redis_.denied.contains("PUBSUB");
  if (in_quorum_ || word(4) != "queue" || word(5).empty() || !before_.queue.empty() || !may_ask || fresh_.empty() ||
      before_.record(word(0)) != nullptr)
    return;
  const std::string beginning = keys_[1].substr(0, keys_[1].size() - 5) + "wake:";
  for (const auto& [channel, sessions] : redis_.subscribers) {
    insist(sessions.empty() || !channel.starts_with(beginning) ||
               redis_.subscribers.size() > (redis_.is_hasty ? 4 : 32) ||
               was_published(channel.substr(beginning.size()), ""),
           "wakes nobody who was forgotten");
  }
}

void Clerk::check_refusal() {
  const Books::Record *cooled = before_.record(word(0)), *still = books_.record(word(0));
  const auto its_levels = cooled != nullptr ? cooled->level_names() : Words{};
  const bool is_mine = std::find(its_levels.begin(), its_levels.end(), word(1)) != its_levels.end();
  insist(!was_told("busy") || !is_mine || cooled->expires > now_ || still == nullptr,
         "lets a grant cool that was not used");
  const bool waits = word(4) == "queue";
  const bool is_asked_to_wait = was_told("busy") || was_told("hold") || was_told("foreign");
  // In a quorum each request has a token of its own: the taker may wait with another when this one's grant is gone.
  const Books::Waiter* queued = books_.waiter(me());
  const bool is_another = was_told("evicted") && me() != word(0) && queued != nullptr && queued->level != word(1);
  insist(is_asked_to_wait || was_told("young") || word(4) == "reenter" || was_told("cancelled") || is_another ||
             queued == nullptr,
         "leaves somebody in the queue whom it has turned away");
  if (is_asked_to_wait && waits) {
    if (queued == nullptr)
      return accuse("lets somebody wait who is not in the queue");
    insist(queued->alive >= now_ + said_number(1), "lets a waiter sleep until it counts as dead");
    insist(said_number(1) >= 1 && said_number(1) <= minute, "tells a waiter to sleep for too long");
    const long long rank = books_.rank(me());
    long long first = 0;
    for (const auto& [token, r] : books_.records) first = first == 0 ? r.until() : std::min(first, r.until());
    const bool is_simple =
        !in_quorum_ && !redis_.is_hasty && !has_doubts_ && was_told("busy") && !is_barred() && !books_.is_foreign;
    insist(rank > 0 || said_number(1) <= 2000, "lets the first in the queue sleep for too long");
    insist(!is_simple || said_number(1) <= std::max(first - now_ + 1 + rank * 20, (rank + 1) * 200),
           "lets a waiter sleep while the lock is free");
    insist(said(2) == std::to_string(queued->ticket), "tells a wrong ticket");
    const std::size_t place = was_told("busy") ? 9 : was_told("hold") ? 6 : 7;
    insist(said_number(place) == books_.rank(me()) + 1, "tells a wrong place");
    const Books::Waiter* old = before_.waiter(me());
    insist(old == nullptr || doubts_tickets_ || old->ticket == queued->ticket, "moves a waiter in the queue");
    const long long last = std::atoll(before_.recall("ticket").c_str());
    const bool is_new = old == nullptr && word(5).empty() && !is_newest() && option("first").empty();
    insist(in_quorum_ || !is_new || queued->ticket > last, "gives a ticket that is not the last");
    const auto alive = std::count_if(before_.queue.begin(), before_.queue.end(), [&](const auto& other) {
      return books_.waiter(other.token) != nullptr && is_alive(other);
    });
    const std::string most = option("max-waiting");
    insist(most.empty() || old != nullptr || !word(5).empty() || is_newest() || alive < std::atoll(most.c_str()),
           "lets more wait than was allowed");
  }
  if (was_told("busy")) {
    const long long taken = seats_taken(books_);
    const bool fits = taken == 0 || (books_.capacity == number(2) && (number(2) == 0 || taken < number(2)));
    const bool is_first = books_.queue.empty() || books_.queue.front().token == me();
    // Of a crowd of dead holders one call looks at a part, removes them, and has the next call look at the others.
    const bool is_cut = redis_.is_hasty && said_number(1) <= 100 && books_.records.size() < before_.records.size();
    insist(in_quorum_ || !fits || !is_first || is_barred() || is_cut || books_.is_foreign,
           "refuses a lock that is free");
    insist(said_number(8) == books_.capacity.value_or(number(2)) || in_quorum_ || taken == 0, "tells a wrong mode");
    insist(said_number(10) == static_cast<long long>(books_.queue.size()), "tells wrongly how many wait");
  }
  if (was_told("full")) {
    const auto alive =
        std::count_if(books_.queue.begin(), books_.queue.end(), [&](const auto& w) { return is_alive(w); });
    // Of a crowd of dead waiters one call removes a part.
    const bool is_cut = redis_.is_hasty && before_.queue.size() >= books_.queue.size() + 4;
    insist(is_cut || alive >= std::atoll(option("max-waiting").c_str()), "says that too many wait, but they do not");
    insist(word(5).empty(), "turns away one that has waited");
  }
  if (was_told("attempts"))
    insist(is_exhausted(fmt::format("attempts={} once={} per={}", option("attempts"), option("once"), option("per"))),
           "says that it was tried often enough");
  if (was_told("done"))
    insist(suffices(before_, fmt::format("once={} per={}", option("once"), option("per")), born(), now_),
           "says that it is done");
  if (was_told("cancelled"))
    insist(!level_end_before_.empty() || !token_end_before_.empty(), "says that it was cancelled, but it was not");
  if (was_told("hold"))
    insist(books_.held_back_until() > now_ && said_number(3) == books_.held_back_until(), "tells of a wrong hold");
  const Books::Record* old = before_.holder(word(0), now_);
  if (was_told("evicted"))
    insist(old != nullptr && !extra(old->tail, "evict").empty(), "says that somebody was evicted who was not");
  if (was_told("lost"))
    insist(old == nullptr || !token_end_before_.empty(), "says that somebody has lost the lock who has it");
}

void Clerk::check_release() {
  if (has_doubts_)
    return;
  const Books::Record *old = before_.holder(word(0), now_), *r = books_.holder(word(0), now_);
  const auto had = old != nullptr ? old->level_names() : Words{};
  const bool was_level = std::find(had.begin(), had.end(), word(1)) != had.end();
  if (was_told("kept")) {
    insist(r != nullptr && static_cast<std::size_t>(said_number(1)) == r->level_names().size(), "tells wrong levels");
    check_ends(word(0));
  } else {
    insist(r == nullptr || (old == nullptr && !fresh_.empty()), "says that the lock is given up, which it is not");
  }
  if (r != nullptr) {
    const auto left = r->level_names();
    insist(std::find(left.begin(), left.end(), word(1)) == left.end(), "keeps a level that has ended");
  }
  if (was_told("cooling")) {
    const Books::Record* cooling = books_.record(word(0));
    insist(cooling != nullptr && cooling->cools == now_ + said_number(1), "tells a wrong pause");
  }
  if (was_told("lost")) {
    insist(old == nullptr, "says that the lock was lost, which it was not");
    insist(releases_all() ? token_end_before_ != word(1).substr(1) : level_end_before_ != "r",
           "says that the lock was lost when it is told again");
    const std::string& died = before_.recall("died");
    const auto run = before_.running.find(word(0));
    const bool is_unnoticed = run != before_.running.end();  // it is that run which has ended, not one before it
    const bool is_foretold = is_unnoticed && !extra(run->second.tail, "end").empty();
    const Books::Ending* death = nullptr;  // the last, if there are several
    for (const Books::Ending& e : books_.history) {
      const bool was_dead = died.find(fmt::format("{} {} {} ", word(0), e.capacity, e.fence)) != std::string::npos;
      const bool is_told = is_unnoticed ? !is_foretold && e.fence == run->second.fence : was_dead;
      if (is_told && (death == nullptr || e.fence >= death->fence))
        death = &e;
    }
    const std::string how = !word(3).empty() ? word(3) : word(2) != "-" ? word(2) : "lost";
    if (word(5) == "1") {  // a level inside another does not know how the run ended
      const auto& old_endings = before_.history;
      const bool is_known =
          death == nullptr || std::find(old_endings.begin(), old_endings.end(), *death) != old_endings.end();
      insist(is_known || death->how == "died" || is_eviction(death->how),
             "takes the end of an inner level for that of the run");
    } else {
      insist(death == nullptr || death->how.substr(0, 24) == how.substr(0, 24), "does not believe who comes late");
    }
    insist(releases_all() || redis_.is_full || remembered(level_key) == "l", "does not remember who comes too late");
  } else if (releases_all()) {
    insist(remembered(token_key) == word(1).substr(1), "does not remember who has released");
  } else {
    insist(!was_level || remembered(level_key) == "r", "does not remember who has released");
  }
  if (old != nullptr && r == nullptr && !in_quorum_) {
    const Books::Ending* end = books_.ending(old->fence);
    insist(end != nullptr && end->ended == now_, "gives up the lock without a word");
  }
}

/// A record does not outlive the last of its levels.
void Clerk::check_ends(const std::string& token) {
  const Books::Record* r = books_.holder(token, now_);
  if (r == nullptr || before_.record(token) == nullptr || before_.record(token)->levels == r->levels)
    return;
  const auto ends = r->level_ends();
  insist(ends.empty() || r->expires <= *std::max_element(ends.begin(), ends.end()), "keeps a level that was killed");
}

void Clerk::check_renewal() {
  const Books::Record *old = before_.holder(word(0), now_), *r = books_.holder(word(0), now_);
  if (was_told("extended")) {
    if (old == nullptr || r == nullptr)
      return accuse("extends what nobody has");
    insist(extra(old->tail, "evict").empty(), "extends what must be given up");
    insist(r->expires >= now_ + number(1) && said_number(1) == r->expires - now_, "extends wrongly");
    const auto levels = r->level_names();
    const bool is_known = std::find(levels.begin(), levels.end(), word(2)) != levels.end();
    const auto was = old->level_ends(), is = r->level_ends();
    const bool is_makers = is_known && word(2) == levels[0];
    if (!word(2).empty() && !is.empty() && !is_makers) {
      const bool is_script = r->kept == 0 && extra(r->tail, "end").empty();
      insist(is_script ? is[0] >= now_ + number(1) : is[0] == was[0], "renews wrongly for the script around a run");
    }
    insist((said(2) == "1") == (is_known || word(2).empty()), "tells a wrong level");
  } else {
    // After an end, the record may remain for the pause that follows, and a clock set back makes it look alive.
    const bool has_lost = old == nullptr || before_.ending(old->fence) != nullptr;
    insist(!was_told("lost") || has_lost, "says that the lock was lost, which it was not");
    insist(!was_told("evicted") || (old != nullptr && !extra(old->tail, "evict").empty()),
           "says that somebody was evicted who was not");
  }
}

void Clerk::check_cancel() {
  const std::string& waiter = words_.size() > 2 ? word(2) : word(0);
  insist(books_.waiter(waiter) == nullptr, "leaves in the queue who has left");
  insist(!remembered(level_key).empty(), "does not remember what was cancelled");
  insist(waiter.empty() || books_.newest().level != word(1) || books_.newest().born == 0,
         "lets one supersede who has left");
  check_ends(word(0));
  const Books::Record* r = books_.holder(word(0), now_);
  const auto levels = r != nullptr ? r->level_names() : Words{};
  insist(!level_end_before_.empty() || std::find(levels.begin(), levels.end(), word(1)) == levels.end(),
         "leaves the lock with a level that gives it back");
  const Books::Record* old = before_.holder(word(0), now_);
  if (old != nullptr && level_end_before_.empty() && old->levels.substr(0, old->levels.find(':')) == word(1) &&
      extra(old->tail, "end").empty() && !has_doubts_)
    insist(
        books_.record(word(0)) == nullptr && books_.ending(old->fence) == nullptr && !books_.running.contains(word(0)),
        "remembers what was never used");
}

bool Clerk::is_new_settlement() const { return word(3) == "1" || word(3) == "2"; }

void Clerk::check_settlement() {
  const Books::Record *old = before_.holder(word(0), now_), *r = books_.holder(word(0), now_);
  const bool may_choose = old != nullptr && old->fence != number(1) && is_new_settlement();
  insist(!may_choose || before_.floor < number(1) || was_told("used"), "settles a fence that another may have");
  if (was_told("settled"))
    insist(r != nullptr && r->fence >= number(1) && !extra(r->tail, "settled").empty() && books_.floor >= number(1),
           "settles nothing");
  if (was_told("lost"))
    insist(r == nullptr, "says that the lock was lost, which it was not");
  insist(word(2).empty() || books_.waiter(word(2)) == nullptr, "leaves a holder in the queue");
}

void Clerk::check_force() {
  const bool may_delete = std::find(words_.begin() + 2, words_.end(), "foreign") != words_.end();
  insist(!before_.is_foreign || books_.is_foreign || may_delete || is_named(0), "deletes another program's key");
  for (const auto& [token, old] : before_.records) {
    if (!is_named(old.fence) || old.until() <= now_)
      continue;
    const Books::Record* r = books_.record(token);
    const bool is_marked = r != nullptr && !extra(r->tail, "evict").empty();
    const bool is_gone = r == nullptr || !fresh_.empty();
    const bool may_mark = old.expires > now_ && word(0) == "evict" && (old.kept == 1 || old.level_names().size() > 1);
    const bool must_mark = may_mark && old.kept == 1;
    insist(must_mark ? is_marked : is_gone || (may_mark && is_marked), "does not do what it was told");
  }
}

void Clerk::check_hold() {
  const auto mark = redis_.data.find(keys_[6]);
  const bool is_marked = mark != redis_.data.end() && mark->second.expires > now_;
  if (was_told("held") && number(2) > 0 && before_.recall("hold") != books_.recall("hold")) {
    insist(books_.held_back_until() == said_number(1) && said_number(1) > now_, "makes a wrong hold");
    insist(is_marked && mark->second.expires == books_.held_back_until(), "does not mark a hold");
    insist(books_.held_back_until() <= now_ + 91 * day, "holds for too long");
  }
  // A repetition is told again which hold it has ended, and leaves alone one that has begun since.
  const bool is_repeated = before_.recall("holds").find(fmt::format(" {} ", word(0))) != std::string::npos;
  const bool may_hold = was_told("held") || was_told("past") || is_repeated;
  insist(may_hold || books_.held_back_until() <= now_, "does not end a hold");
  insist(may_hold || !is_marked, "leaves the mark of a hold");
}

}  // namespace sim
