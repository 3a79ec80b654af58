#include "observe/facts.h"

#include <algorithm>
#include <array>

#include "observe/word_reader.h"

namespace rlock::observe {
namespace {

/// Version 0.1.0 wrote no extras. A holder of that version with a command has a process that renews.
bool is_kept(const lock::Owner& owner, std::string_view extras) {
  return extras.empty() ? !owner.command.empty() : find_extra(extras, "kept").has_value();
}

/// Who told the holder to give the lock up, which Redis keeps as "forced,WHO" or "replaced,WHO".
std::optional<Ending> read_eviction(std::string_view extras) {
  const auto mark = find_extra(extras, "evict");
  if (!mark)
    return std::nullopt;
  Ending ending = Ending::read(*mark);
  if (ending.kind != Ending::Kind::replaced)
    ending.kind = Ending::Kind::evicted;
  return ending;
}

void read_holder(WordReader words, LockFacts& facts) {
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
  holder.kept = is_kept(holder.owner, words.rest());
  if (const auto born = find_extra(words.rest(), "born"))  // when it began to ask
    holder.waited = std::max(Milliseconds{0}, holder.acquired_at - WordReader{*born}.time());
  holder.evicted = read_eviction(words.rest());
  if (expires <= facts.now) {
    holder.cooling = std::max(Milliseconds{0}, cools - facts.now);
    holder.held = std::max(Milliseconds{0}, expires - holder.acquired_at);
  }
  facts.cooling = std::max(facts.cooling, holder.cooling);
  facts.holders.push_back(std::move(holder));
}

void read_capacity(WordReader words, LockFacts& facts) { facts.capacity = lock::Capacity{words.count()}; }

void read_waiter(WordReader words, LockFacts& facts) {
  WaiterFacts waiter;
  waiter.wanted = {words.count()};
  const WallTime since{Milliseconds{words.number_or_zero() / 1000}};  // a ticket is a time in microseconds
  waiter.waiting = std::max(Milliseconds{0}, facts.now - since);
  waiter.owner = words.owner();
  facts.waiters.push_back(std::move(waiter));
}

void read_last(WordReader words, LockFacts& facts) {
  LastRun last;
  last.acquired_at = words.time();
  last.ended_at = words.time();
  last.held = words.duration();
  last.ending = Ending::read(words.word());
  last.owner = words.owner();
  facts.last = std::move(last);
}

void read_success(WordReader words, LockFacts& facts) {
  Success success;
  success.acquired_at = words.time();
  success.ended_at = words.time();
  success.owner = words.owner();
  facts.success = std::move(success);
}

/// Redis counts an acquisition either as "acquired" or, after a wait, as "waited".
void read_waited(WordReader words, LockFacts& facts) {
  facts.counters.waited = words.number_or_zero();
  facts.counters.acquired += facts.counters.waited;
}

ForeignFacts& foreign(LockFacts& facts) { return facts.foreign ? *facts.foreign : facts.foreign.emplace(); }

void read_foreign_ttl(WordReader words, LockFacts& facts) {
  const auto ms = words.number();
  if (ms)
    foreign(facts).expires_in = Milliseconds{*ms};
}

struct Reader {
  std::string_view kind;
  void (*read)(WordReader, LockFacts&);
};

constexpr std::array readers{
    Reader{"capacity", read_capacity},
    Reader{"holder", read_holder},
    Reader{"waiter", read_waiter},
    Reader{"last", read_last},
    Reader{"success", read_success},
    Reader{"acquired", [](WordReader words, LockFacts& facts) { facts.counters.acquired += words.number_or_zero(); }},
    Reader{"waited", read_waited},
    Reader{"forced", [](WordReader words, LockFacts& facts) { facts.counters.forced = words.number_or_zero(); }},
    Reader{"lost", [](WordReader words, LockFacts& facts) { facts.counters.lost = words.number_or_zero(); }},
    Reader{"type", [](WordReader words, LockFacts& facts) { foreign(facts).type = words.rest(); }},
    Reader{"value", [](WordReader words, LockFacts& facts) { foreign(facts).value = words.rest(); }},
    Reader{"ttl", read_foreign_ttl},
};

/// Skips facts of kinds that only a later version knows.
void read_fact(std::string_view fact, LockFacts& facts) {
  WordReader words{fact};
  const std::string_view kind = words.word();
  for (const Reader& reader : readers) {
    if (reader.kind == kind)
      reader.read(words, facts);
  }
}

State read_state(const lock::Fields& fields) {
  if (fields.outcome() == "free")
    return State::free;
  if (fields.outcome() == "held")
    return State::held;
  if (fields.outcome() == "cooling")
    return State::cooling;
  if (fields.outcome() == "foreign")
    return State::foreign;
  fields.unexpected();
}

}  // namespace

std::string_view state_name(State state) {
  switch (state) {
    case State::free:
      return "free";
    case State::held:
      return "held";
    case State::cooling:
      return "cooling";
    case State::foreign:
      return "foreign";
  }
  return "";
}

lock::Request status_request(const lock::LockName& name) {
  return lock::script_request(lock::scripts::status, {.keys = name.keys(), .values = {}});
}

LockFacts read_facts(const lock::LockName& name, lock::Fields fields) {
  LockFacts facts;
  facts.name = name.text();
  facts.state = read_state(fields);
  facts.now = WordReader{fields.text()}.time();
  facts.waiting = WordReader{fields.text()}.number_or_zero();
  while (!fields.at_end()) read_fact(fields.text(), facts);
  std::sort(facts.holders.begin(), facts.holders.end(), [](const auto& a, const auto& b) {
    return a.fence.value < b.fence.value;
  });
  if (facts.state == State::foreign && !facts.foreign)
    facts.foreign.emplace();
  return facts;
}

LockFacts unreadable(const lock::LockName& name, std::string_view words) {
  LockFacts facts{.name = name.text(), .state = State::foreign};
  facts.foreign = ForeignFacts{.type = "unreadable", .value = std::string{words}, .expires_in = {}};
  return facts;
}

LockFacts inspect(Loop& loop, redis::Server& server, const lock::LockName& name, Deadline deadline) {
  return read_facts(name, lock::call_script(loop, server, status_request(name), deadline));
}

}  // namespace rlock::observe
