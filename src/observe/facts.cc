#include "observe/facts.h"

#include <fmt/format.h>

#include "base/escape.h"
#include "base/word.h"
#include "lock/request.h"
#include "lock/wording.h"

namespace rlock::observe {
namespace {

constexpr std::string_view unreadable_type = "unreadable";
constexpr std::size_t most_waiters = 500;  // as status.lua has it

/// In the order of the enumerators.
constexpr std::array<std::string_view, 4> state_names{"free", "held", "cooling", "foreign"};

/// Who told the holder to give the lock up, which Redis keeps as "forced,WHO" or "replaced,WHO".
std::optional<Ending> read_eviction(std::string_view extras) {
  const auto mark = lock::find_extra(extras, "evict");
  if (!mark)
    return std::nullopt;
  Ending ending = Ending::read(*mark);
  if (ending.kind != Ending::Kind::replaced)
    ending.kind = Ending::Kind::evicted;
  return ending;
}

void read_holder(lock::WordReader words, LockFacts& facts) {
  HolderFacts holder;
  const WallTime expires = words.time();
  const WallTime cools = words.time();
  holder.fence = {words.number_or_zero()};
  holder.slot = words.count();
  holder.acquired_at = words.time();
  holder.levels = words.count();
  holder.owner = words.owner();
  holder.held = std::max(Milliseconds{0}, facts.now - holder.acquired_at);
  holder.lease = std::max(Milliseconds{0}, expires - facts.now);
  holder.has_keeper = lock::find_extra(words.rest(), "kept").has_value();
  if (const auto born = lock::find_extra(words.rest(), "born"))  // when it began to ask
    holder.waited = std::max(Milliseconds{0}, holder.acquired_at - lock::WordReader{*born}.time());
  holder.evicted = read_eviction(words.rest());
  if (expires <= facts.now) {
    holder.cooling = std::max(Milliseconds{0}, cools - facts.now);
    holder.held = std::max(Milliseconds{0}, expires - holder.acquired_at);
    holder.failures = lock::parse_failures(lock::find_extra(words.rest(), "failed").value_or(""));
  }
  facts.cooling = std::max(facts.cooling, holder.cooling);
  facts.holders.push_back(std::move(holder));
}

void read_capacity(lock::WordReader words, LockFacts& facts) { facts.capacity = lock::Capacity{words.count()}; }

void read_waiter(lock::WordReader words, LockFacts& facts) {
  if (facts.waiters.size() == most_waiters)
    return;
  WaiterFacts waiter;
  waiter.wanted = {words.count()};
  const WallTime since{Milliseconds{words.number_or_zero() / 1000}};  // in microseconds
  waiter.waiting = std::max(Milliseconds{0}, facts.now - since);
  waiter.owner = words.owner();
  waiter.first = lock::find_extra(words.rest(), "first").has_value();
  facts.waiters.push_back(std::move(waiter));
}

void read_last(lock::WordReader words, LockFacts& facts) {
  Run last{.lock = facts.name};
  last.fence = {words.number_or_zero()};
  last.acquired_at = words.time();
  last.ended_at = words.time();
  last.ending = Ending::read(words.word());
  last.owner = words.owner();
  facts.last = std::move(last);
}

void read_success(lock::WordReader words, LockFacts& facts) {
  Run success{.lock = facts.name};
  success.acquired_at = words.time();
  success.ended_at = words.time();
  success.ending.kind = Ending::Kind::exited;
  success.owner = words.owner();
  success.once = percent_decode(words.rest()).value_or("?");
  facts.success = std::move(success);
}

void read_hold(lock::WordReader words, LockFacts& facts) {
  HoldFacts hold;
  hold.hold.until = words.time();
  hold.since = words.time();
  hold.hold.by = words.owner();
  facts.hold = std::move(hold);
}

template <auto counter>
void read_counter(lock::WordReader words, LockFacts& facts) {
  facts.counters.*counter = words.number_or_zero();
}

void read_skips(lock::WordReader words, LockFacts& facts) {
  Counters& counters = facts.counters;
  for (std::size_t i = 0; i < skip_reasons.size(); ++i)
    counters.skipped.at(i) =
        lock::WordReader{lock::find_extra(words.rest(), skip_reasons.at(i).name).value_or("")}.number_or_zero();
  const auto last = lock::find_extra(words.rest(), "last");
  if (!last)
    return;
  std::string_view parts = *last;
  const auto text = [&parts] { return percent_decode(take_word(parts, ',')).value_or("?"); };
  Skip skip{.at = lock::WordReader{take_word(parts, ',')}.time()};
  skip.reason = text();
  skip.holder = text();
  skip.host = text();
  counters.last_skip = std::move(skip);
}

ForeignFacts& foreign(LockFacts& facts) { return facts.foreign ? *facts.foreign : facts.foreign.emplace(); }

void read_foreign_ttl(lock::WordReader words, LockFacts& facts) {
  const auto ms = words.number();
  if (ms)
    foreign(facts).expires_in = Milliseconds{*ms};
}

struct Reader {
  std::string_view kind;
  void (*read)(lock::WordReader, LockFacts&);
};

constexpr std::array readers{
    Reader{"capacity", read_capacity},
    Reader{"holder", read_holder},
    Reader{"waiter", read_waiter},
    Reader{"last", read_last},
    Reader{"success", read_success},
    Reader{"hold", read_hold},
    Reader{"acquired", read_counter<&Counters::acquired>},
    Reader{"waited", read_counter<&Counters::waited>},
    Reader{"evicted", read_counter<&Counters::evicted>},
    Reader{"lost", read_counter<&Counters::lost>},
    Reader{"failed", read_counter<&Counters::failed>},
    Reader{"failing", read_counter<&Counters::failing>},
    Reader{"skipped", read_skips},
    Reader{"type", [](lock::WordReader words, LockFacts& facts) { foreign(facts).type = words.rest(); }},
    Reader{"value", [](lock::WordReader words, LockFacts& facts) { foreign(facts).value = words.rest(); }},
    Reader{"ttl", read_foreign_ttl},
};

/// Skips facts of kinds that only a later version knows.
void read_fact(std::string_view fact, LockFacts& facts) {
  lock::WordReader words{fact};
  const std::string_view kind = words.word();
  for (const Reader& reader : readers) {
    if (reader.kind == kind)
      reader.read(words, facts);
  }
}

State read_state(const lock::Fields& fields) {
  const auto* const found = std::find(state_names.begin(), state_names.end(), fields.outcome());
  if (found == state_names.end())
    fields.unexpected();
  return static_cast<State>(found - state_names.begin());
}

}  // namespace

std::string_view state_name(State state) { return state_names.at(static_cast<std::size_t>(state)); }

std::string describe(const ForeignFacts& key) {
  if (key.type == unreadable_type)
    return fmt::format("{}: {}", key.type, key.value.value_or(""));
  return key.value ? lock::describe_key(key.type, *key.value) : key.type;
}

std::string format_ago(WallTime then, WallTime now) {
  const std::string text = format_duration(std::max(Milliseconds{0}, now - then));
  const auto unit = text.find_first_of("dhm");
  const bool is_short = text.ends_with("ms") || unit == std::string::npos;
  return fmt::format("{} ago", is_short ? text : text.substr(0, unit + 1));
}

std::string describe_end(const Run& run, WallTime now) {
  const bool is_late = !run.is_end_known() && run.owner.stays;
  return fmt::format("{}{} {}", run.ending.in_words(), is_late ? ", noticed" : "", format_ago(run.ended_at, now));
}

bool is_unheard_of(const LockFacts& lock) {
  return lock.state == State::free && lock.counters.acquired == 0 && lock.waiting == 0;
}

LockFacts read_facts(const lock::LockName& name, lock::Fields fields) {
  LockFacts facts;
  facts.name = name.text();
  facts.state = read_state(fields);
  facts.now = lock::WordReader{fields.text()}.time();
  facts.waiting = lock::WordReader{fields.text()}.number_or_zero();
  while (!fields.at_end()) read_fact(fields.text(), facts);
  facts.counters.acquired += facts.counters.waited;  // Redis counts an acquisition after a wait as "waited" alone
  std::sort(facts.holders.begin(), facts.holders.end(), [](const auto& a, const auto& b) {
    return a.fence.value < b.fence.value;
  });
  if (facts.state == State::foreign && !facts.foreign)
    facts.foreign.emplace();
  return facts;
}

LockFacts unreadable(const lock::LockName& name, std::string_view words) {
  LockFacts facts{.name = name.text(), .state = State::foreign};
  facts.foreign = ForeignFacts{.type = std::string{unreadable_type}, .value = std::string{words}};
  return facts;
}

LockFacts inspect(redis::Server& server, const lock::LockName& name, Deadline deadline) {
  return read_facts(name, lock::call_script(server, lock::status_request(name), deadline));
}

}  // namespace rlock::observe
