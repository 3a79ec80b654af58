#include "observe/inspect.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/escape.h"
#include "lock/script_call.h"
#include "redis/exchange.h"

namespace rlock::observe {
namespace {

constexpr std::size_t batch = 50;  // script calls in one exchange, which may be long

/// One fact of status.lua, read word by word; the owner is what is left at its end.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  std::string_view word() {
    const auto space = rest_.find(' ');
    const std::string_view word = rest_.substr(0, space);
    rest_.remove_prefix(space == std::string_view::npos ? rest_.size() : space + 1);
    return word;
  }
  std::optional<long long> number() {
    const std::string_view digits = word();
    long long value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size())
      return std::nullopt;
    return value;
  }
  long long number_or_zero() { return number().value_or(0); }
  lock::Owner owner() { return lock::Owner::decode(rest_); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

WallTime wall(long long ms) { return WallTime{Milliseconds{ms}}; }

void read_holder(Words words, long long now, LockFacts& facts) {
  HolderFacts holder;
  const long long expires = words.number_or_zero();
  const long long cools = words.number_or_zero();
  holder.fence = {static_cast<std::uint64_t>(words.number_or_zero())};
  holder.slot = static_cast<int>(words.number_or_zero());
  const long long acquired = words.number_or_zero();
  holder.levels = static_cast<int>(words.number_or_zero());
  holder.owner = words.owner();
  holder.acquired_at = wall(acquired);
  holder.held = Milliseconds{std::max(0LL, now - acquired)};
  holder.lease = Milliseconds{std::max(0LL, expires - now)};
  if (expires <= now)
    facts.cooling = std::max(facts.cooling, Milliseconds{cools - now});
  facts.holders.push_back(std::move(holder));
}

void read_waiter(Words words, long long now, LockFacts& facts) {
  WaiterFacts waiter;
  waiter.wanted = {static_cast<int>(words.number_or_zero())};
  waiter.waiting = Milliseconds{std::max(0LL, now - words.number_or_zero() / 1000)};  // a ticket is in us
  waiter.owner = words.owner();
  facts.waiters.push_back(std::move(waiter));
}

void read_last(Words words, LockFacts& facts) {
  LastRun last;
  last.acquired_at = wall(words.number_or_zero());
  last.ended_at = wall(words.number_or_zero());
  last.held = Milliseconds{words.number_or_zero()};
  if (const auto status = words.number())
    last.exit_status = static_cast<int>(*status);
  last.owner = words.owner();
  facts.last = std::move(last);
}

void read_foreign(std::string_view kind, Words words, LockFacts& facts) {
  if (!facts.foreign)
    facts.foreign.emplace();
  if (kind == "type")
    facts.foreign->type = words.rest();
  if (kind == "value")
    facts.foreign->value = words.rest();
  if (kind == "ttl") {
    const long long ms = words.number_or_zero();
    if (ms >= 0)
      facts.foreign->expires_in = Milliseconds{ms};
  }
}

void read_fact(std::string_view fact, long long now, LockFacts& facts) {
  Words words{fact};
  const std::string_view kind = words.word();
  if (kind == "capacity")
    facts.capacity = lock::Capacity{static_cast<int>(words.number_or_zero())};
  if (kind == "holder")
    read_holder(words, now, facts);
  if (kind == "waiter")
    read_waiter(words, now, facts);
  if (kind == "last")
    read_last(words, facts);
  if (kind == "acquired")
    facts.acquired = words.number_or_zero();
  if (kind == "waited")
    facts.waited = words.number_or_zero();
  if (kind == "forced")
    facts.forced = words.number_or_zero();
  if (kind == "type" || kind == "value" || kind == "ttl")
    read_foreign(kind, words, facts);
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

lock::Request status_request(const lock::LockName& name) {
  return lock::script_request(lock::scripts::status, {.keys = name.keys(), .values = {}});
}

/// The key is on its way to another node of the cluster, or the node does not know the script yet.
bool is_elsewhere(const redis::Reply& reply) {
  return reply.is_error("MOVED") || reply.is_error("ASK") || reply.is_error("TRYAGAIN") || reply.is_error("NOSCRIPT");
}

/// Nothing for a key that no lock can have: another program's, or a companion of a lock.
std::optional<lock::LockName> lock_of_key(const std::string& prefix, std::string_view key) {
  if (!key.starts_with(prefix) || lock::is_companion_key(key))
    return std::nullopt;
  try {
    return lock::LockName{prefix, key.substr(prefix.size())};
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

LockFacts read_facts(const lock::LockName& name, lock::Fields fields) {
  LockFacts facts;
  facts.name = name.text();
  facts.state = read_state(fields);
  const long long now = fields.number();
  facts.waiting = fields.number();
  while (!fields.at_end()) read_fact(fields.text(), now, facts);
  std::sort(facts.holders.begin(), facts.holders.end(), [](const auto& a, const auto& b) {
    return a.fence.value < b.fence.value;
  });
  return facts;
}

LockFacts inspect(Loop& loop, redis::Server& server, const lock::LockName& name, Deadline deadline) {
  return read_facts(name, lock::call_script(loop, server, status_request(name), deadline));
}

std::vector<LockFacts> inspect(Loop& loop,
                               redis::Server& server,
                               const std::vector<lock::LockName>& names,
                               Milliseconds timeout,
                               redis::Server& whole) {
  std::vector<LockFacts> all;
  if (names.empty())
    return all;
  // The first teaches the server the script where it must be taught.
  all.push_back(inspect(loop, whole, names[0], BootClock::now() + timeout));
  for (std::size_t begin = 1; begin < names.size(); begin += batch) {
    const std::size_t end = std::min(begin + batch, names.size());
    std::vector<redis::Command> commands;
    for (std::size_t i = begin; i < end; ++i) commands.push_back(status_request(names[i]).command);
    auto replies = redis::call(loop, server, commands, BootClock::now() + timeout);
    for (std::size_t i = begin; i < end; ++i) {
      redis::Reply& reply = replies[i - begin];
      if (is_elsewhere(reply)) {
        all.push_back(inspect(loop, whole, names[i], BootClock::now() + timeout));
        continue;
      }
      lock::check_reply(server.address(), reply);
      all.push_back(read_facts(names[i], {server.address(), std::move(reply)}));
    }
  }
  return all;
}

std::vector<lock::LockName> list_locks(Loop& loop,
                                       redis::Server& server,
                                       const std::string& prefix,
                                       Milliseconds timeout) {
  std::vector<lock::LockName> names;
  std::string cursor = "0";
  // Without a prefix most keys are no locks, and those that can be told from others are hashes. Redis 5 cannot filter.
  bool only_hashes = prefix.empty();
  for (bool more = true; more;) {
    redis::Command scan{"SCAN", cursor, "MATCH", glob_escape(prefix) + "*", "COUNT", "1000"};
    if (only_hashes)
      scan.insert(scan.end(), {"TYPE", "hash"});
    const auto replies = redis::call(loop, server, {scan}, BootClock::now() + timeout);
    if (only_hashes && replies[0].is_error("ERR")) {
      only_hashes = false;
      continue;
    }
    lock::check_reply(server.address(), replies[0]);
    if (replies[0].elements.size() != 2) {
      throw Error{ExitCode::unavailable, server.address().url + ": SCAN was answered with something else"};
    }
    cursor = replies[0].elements[0].text;
    for (const redis::Reply& key : replies[0].elements[1].elements) {
      if (auto name = lock_of_key(prefix, key.text))
        names.push_back(*std::move(name));
    }
    more = cursor != "0";
  }
  const auto less = [](const lock::LockName& a, const lock::LockName& b) { return a.text() < b.text(); };
  std::sort(names.begin(), names.end(), less);
  names.erase(std::unique(names.begin(), names.end()), names.end());  // SCAN may show a key twice
  return names;
}

}  // namespace rlock::observe
