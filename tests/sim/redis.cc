#include "redis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <unordered_map>

namespace sim {
namespace {

using Kind = Value::Kind;
constexpr const char* syntax = "ERR syntax error";
constexpr const char* not_integer = "ERR value is not an integer or out of range";
constexpr const char* not_float = "ERR value is not a valid float";

/// An error reply, thrown by a command.
struct Refusal {
  std::string words;
};

bool is(const std::string& word, std::string_view name) {
  return std::equal(word.begin(), word.end(), name.begin(), name.end(), [](char a, char b) {
    return std::toupper(static_cast<unsigned char>(a)) == b;
  });
}

std::string upper(std::string word) {
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

std::string lower(std::string word) {
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

/// Only what Redis itself would write: no leading zeros, plus signs or spaces.
long long integer(const std::string& word, const char* otherwise = not_integer) {
  long long value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || std::to_string(value) != word)
    throw Refusal{otherwise};
  return value;
}

double real(const std::string& word, const char* otherwise = not_float) {
  if (word.empty() || std::isspace(static_cast<unsigned char>(word[0])))
    throw Refusal{otherwise};
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (end != word.c_str() + word.size() || std::isnan(value))
    throw Refusal{otherwise};
  return value;
}

std::string score_text(double score) {
  if (std::isinf(score))
    return score > 0 ? "inf" : "-inf";
  return fmt::format("{:.17g}", score);
}

/// Turns "start stop" with negative indices into [first, last), empty if nothing is in it.
std::pair<std::size_t, std::size_t> range(long long start, long long stop, std::size_t size) {
  const auto length = static_cast<long long>(size);
  if (start < 0)
    start = std::max(0LL, start + length);
  if (stop < 0)
    stop += length;
  stop = std::min(stop, length - 1);
  if (start > stop || start >= length)
    return {0, 0};
  return {static_cast<std::size_t>(start), static_cast<std::size_t>(stop) + 1};
}

bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty())
    return text.empty();
  if (pattern[0] == '*')
    return matches(pattern.substr(1), text) || (!text.empty() && matches(pattern, text.substr(1)));
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) && matches(pattern.substr(1), text.substr(1));
}

}  // namespace

/// One running command: its words, and the database with the rules of expiry and types.
struct Command {
  Redis& redis;
  Session& session;
  const Words& words;

  std::size_t size() const { return words.size(); }
  const std::string& operator[](std::size_t i) const { return words[i]; }

  Redis::Entry* entry(const std::string& key) const {
    const auto found = redis.data.find(key);
    if (found == redis.data.end())
      return nullptr;
    if (found->second.expires >= 0 && found->second.expires <= redis.now()) {
      redis.data.erase(found);
      return nullptr;
    }
    return &found->second;
  }

  /// The value of that type; nullptr if there is no such key.
  template <typename T>
  T* find(const std::string& key) const {
    Redis::Entry* e = entry(key);
    if (e == nullptr)
      return nullptr;
    if (T* value = std::get_if<T>(&e->value))
      return value;
    throw Refusal{"WRONGTYPE Operation against a key holding the wrong kind of value"};
  }

  template <typename T>
  T& make(const std::string& key) const {
    if (T* value = find<T>(key))
      return *value;
    return std::get<T>(redis.data.insert_or_assign(key, Redis::Entry{T{}}).first->second.value);
  }

  bool erase(const std::string& key) const { return entry(key) != nullptr && redis.data.erase(key) > 0; }

  /// A container that is empty does not exist.
  template <typename T>
  void tidy(const std::string& key) const {
    const T* value = find<T>(key);
    if (value != nullptr && value->empty())
      redis.data.erase(key);
  }
};

namespace {

Value text_or_nil(const std::string* text) { return text != nullptr ? Value::of(*text) : Value{}; }
Value ok() { return Value::status("OK"); }

std::string* field(Redis::Hash* hash, const std::string& name) {
  if (hash == nullptr)
    return nullptr;
  const auto found = std::find_if(hash->begin(), hash->end(), [&](const auto& pair) { return pair.first == name; });
  return found == hash->end() ? nullptr : &found->second;
}

Redis::Ranking::iterator member(Redis::Ranking& ranking, const std::string& name) {
  return std::find_if(ranking.begin(), ranking.end(), [&](const auto& pair) { return pair.second == name; });
}

// ---- keys and strings

Value get(Command& c) { return text_or_nil(c.find<std::string>(c[1])); }

Value getdel(Command& c) {
  Value value = get(c);
  c.erase(c[1]);
  return value;
}

/// When SET, with its options, or PEXPIRE lets a key expire.
long long expiry(const Command& c, const std::string& unit, const std::string& number) {
  const long long n = integer(number);
  const bool seconds = is(unit, "EX") || is(unit, "EXAT");
  const bool absolute = is(unit, "EXAT") || is(unit, "PXAT");
  if (n <= 0 || (seconds && n > std::numeric_limits<long long>::max() / 1000))
    throw Refusal{fmt::format("ERR invalid expire time in '{}' command", lower(c[0]))};
  return n * (seconds ? 1000 : 1) + (absolute ? 0 : c.redis.now());
}

Value set(Command& c) {
  bool only_new = false, only_old = false, keep = false, wants_old = false;
  long long expires = -1;
  for (std::size_t i = 3; i < c.size(); ++i) {
    if (is(c[i], "NX") && !only_old)
      only_new = true;
    else if (is(c[i], "XX") && !only_new)
      only_old = true;
    else if (is(c[i], "GET"))
      wants_old = true;
    else if (is(c[i], "KEEPTTL") && expires < 0)
      keep = true;
    else if ((is(c[i], "EX") || is(c[i], "PX") || is(c[i], "EXAT") || is(c[i], "PXAT")) && i + 1 < c.size() && !keep &&
             expires < 0) {
      expires = expiry(c, c[i], c[i + 1]);
      ++i;
    } else {
      throw Refusal{syntax};
    }
  }
  const Value old = wants_old ? get(c) : Value{};
  const Redis::Entry* e = c.entry(c[1]);
  if ((only_new && e != nullptr) || (only_old && e == nullptr))
    return wants_old ? old : Value{};
  if (keep && e != nullptr)
    expires = e->expires;
  c.redis.data.insert_or_assign(c[1], Redis::Entry{c[2], expires});
  return wants_old ? old : ok();
}

Value setnx(Command& c) {
  if (c.entry(c[1]) != nullptr)
    return Value::of(0);
  c.redis.data.insert_or_assign(c[1], Redis::Entry{c[2]});
  return Value::of(1);
}

Value add(Command& c, long long by) {
  const std::string* old = c.find<std::string>(c[1]);
  long long sum = 0;
  if (__builtin_add_overflow(old != nullptr ? integer(*old) : 0, by, &sum))
    throw Refusal{"ERR increment or decrement would overflow"};
  c.make<std::string>(c[1]) = std::to_string(sum);
  return Value::of(sum);
}
Value incr(Command& c) { return add(c, 1); }
Value decr(Command& c) { return add(c, -1); }
Value incrby(Command& c) { return add(c, integer(c[2])); }

Value append(Command& c) {
  std::string& text = c.make<std::string>(c[1]);
  text += c[2];
  return Value::of(static_cast<long long>(text.size()));
}

Value strlen(Command& c) {
  const std::string* text = c.find<std::string>(c[1]);
  return Value::of(text != nullptr ? static_cast<long long>(text->size()) : 0);
}

Value getrange(Command& c) {
  const long long start = integer(c[2]), stop = integer(c[3]);
  const std::string* text = c.find<std::string>(c[1]);
  if (text == nullptr || (start < 0 && stop < 0 && start > stop))
    return Value::of(std::string{});
  const auto [first, last] =
      range(start, stop < 0 ? std::max(0LL, stop + static_cast<long long>(text->size())) : stop, text->size());
  return Value::of(text->substr(first, last - first));
}

Value mget(Command& c) {
  Value all = Value::array();
  for (std::size_t i = 1; i < c.size(); ++i) {
    const Redis::Entry* e = c.entry(c[i]);
    all.add(e != nullptr ? text_or_nil(std::get_if<std::string>(&e->value)) : Value{});
  }
  return all;
}

Value exists(Command& c) {
  long long count = 0;
  for (std::size_t i = 1; i < c.size(); ++i) count += c.entry(c[i]) != nullptr;
  return Value::of(count);
}

Value del(Command& c) {
  long long count = 0;
  for (std::size_t i = 1; i < c.size(); ++i) count += c.erase(c[i]);
  return Value::of(count);
}

Value type(Command& c) {
  static constexpr std::array<const char*, 5> names{"string", "hash", "list", "set", "zset"};
  const Redis::Entry* e = c.entry(c[1]);
  return Value::status(e != nullptr ? names.at(e->value.index()) : "none");
}

Value rename(Command& c) {
  Redis::Entry* e = c.entry(c[1]);
  if (e == nullptr)
    throw Refusal{"ERR no such key"};
  Redis::Entry moved = std::move(*e);
  c.redis.data.erase(c[1]);
  c.redis.data.insert_or_assign(c[2], std::move(moved));
  return ok();
}

Value expire(Command& c, long long unit, bool absolute) {
  long long at = integer(c[2]);
  const long long most = std::numeric_limits<long long>::max();
  if (at > most / unit || at < -most / unit || (!absolute && at * unit > most - c.redis.now()))
    throw Refusal{fmt::format("ERR invalid expire time in '{}' command", lower(c[0]))};
  at = at * unit + (absolute ? 0 : c.redis.now());
  Redis::Entry* e = c.entry(c[1]);
  for (std::size_t i = 3; i < c.size(); ++i) {
    if (!is(c[i], "NX") && !is(c[i], "XX") && !is(c[i], "GT") && !is(c[i], "LT"))
      throw Refusal{fmt::format("ERR Unsupported option {}", c[i])};
  }
  if (e == nullptr)
    return Value::of(0);
  for (std::size_t i = 3; i < c.size(); ++i) {
    const bool has = e->expires >= 0;
    if ((is(c[i], "NX") && has) || (is(c[i], "XX") && !has) || (is(c[i], "GT") && (!has || at <= e->expires)) ||
        (is(c[i], "LT") && has && at >= e->expires))
      return Value::of(0);
  }
  if (at <= c.redis.now())
    c.redis.data.erase(c[1]);
  else
    e->expires = at;
  return Value::of(1);
}
Value expire_in_seconds(Command& c) { return expire(c, 1000, false); }
Value pexpire(Command& c) { return expire(c, 1, false); }
Value expireat(Command& c) { return expire(c, 1000, true); }
Value pexpireat(Command& c) { return expire(c, 1, true); }

Value persist(Command& c) {
  Redis::Entry* e = c.entry(c[1]);
  if (e == nullptr || e->expires < 0)
    return Value::of(0);
  e->expires = -1;
  return Value::of(1);
}

Value ttl(Command& c, long long unit) {
  const Redis::Entry* e = c.entry(c[1]);
  if (e == nullptr || e->expires < 0)
    return Value::of(e == nullptr ? -2 : -1);
  return Value::of((e->expires - c.redis.now() + unit / 2) / unit);
}
Value ttl_in_seconds(Command& c) { return ttl(c, 1000); }
Value pttl(Command& c) { return ttl(c, 1); }

Value pexpiretime(Command& c) {
  const Redis::Entry* e = c.entry(c[1]);
  return Value::of(e == nullptr ? -2 : e->expires);
}

Value scan(Command& c) {
  std::string pattern = "*";
  for (std::size_t i = 2; i + 1 < c.size(); i += 2) {
    if (is(c[i], "MATCH"))
      pattern = c[i + 1];
  }
  Value names = Value::array();
  for (auto it = c.redis.data.begin(); it != c.redis.data.end();) {
    const std::string name = (it++)->first;
    if (c.entry(name) != nullptr && matches(pattern, name))
      names.add(Value::of(name));
  }
  Value reply = Value::array();
  reply.add(Value::of("0"));
  reply.add(std::move(names));
  return reply;
}

Value keys(Command& c) {
  Value names = Value::array();
  for (auto it = c.redis.data.begin(); it != c.redis.data.end();) {
    const std::string name = (it++)->first;
    if (c.entry(name) != nullptr && matches(c[1], name))
      names.add(Value::of(name));
  }
  return names;
}

Value dbsize(Command& c) { return Value::of(static_cast<long long>(c.redis.data.size())); }

Value flushall(Command& c) {
  c.redis.data.clear();
  return ok();
}

// ---- hashes

Value hset(Command& c) {
  if (c.size() % 2 != 0)
    throw Refusal{fmt::format("ERR wrong number of arguments for '{}' command", lower(c[0]))};
  auto& hash = c.make<Redis::Hash>(c[1]);
  long long added = 0;
  for (std::size_t i = 2; i < c.size(); i += 2) {
    if (std::string* old = field(&hash, c[i])) {
      *old = c[i + 1];
    } else {
      hash.emplace_back(c[i], c[i + 1]);
      ++added;
    }
  }
  return is(c[0], "HMSET") ? ok() : Value::of(added);
}

Value hsetnx(Command& c) {
  auto& hash = c.make<Redis::Hash>(c[1]);
  if (field(&hash, c[2]) != nullptr)
    return Value::of(0);
  hash.emplace_back(c[2], c[3]);
  return Value::of(1);
}

Value hget(Command& c) { return text_or_nil(field(c.find<Redis::Hash>(c[1]), c[2])); }

Value hmget(Command& c) {
  Value all = Value::array();
  auto* hash = c.find<Redis::Hash>(c[1]);
  for (std::size_t i = 2; i < c.size(); ++i) all.add(text_or_nil(field(hash, c[i])));
  return all;
}

Value hash_contents(Command& c, bool names, bool values) {
  Value all = Value::array();
  if (const auto* hash = c.find<Redis::Hash>(c[1])) {
    for (const auto& [name, value] : *hash) {
      if (names)
        all.add(Value::of(name));
      if (values)
        all.add(Value::of(value));
    }
  }
  return all;
}
Value hgetall(Command& c) { return hash_contents(c, true, true); }
Value hkeys(Command& c) { return hash_contents(c, true, false); }
Value hvals(Command& c) { return hash_contents(c, false, true); }

Value hscan(Command& c) {
  integer(c[2], "ERR invalid cursor");
  Value reply = Value::array();
  reply.add(Value::of("0"));
  reply.add(hgetall(c));
  return reply;
}

Value hdel(Command& c) {
  auto* hash = c.find<Redis::Hash>(c[1]);
  long long count = 0;
  for (std::size_t i = 2; hash != nullptr && i < c.size(); ++i)
    count += static_cast<long long>(std::erase_if(*hash, [&](const auto& pair) { return pair.first == c[i]; }));
  c.tidy<Redis::Hash>(c[1]);
  return Value::of(count);
}

Value hlen(Command& c) {
  const auto* hash = c.find<Redis::Hash>(c[1]);
  return Value::of(hash != nullptr ? static_cast<long long>(hash->size()) : 0);
}

Value hexists(Command& c) { return Value::of(field(c.find<Redis::Hash>(c[1]), c[2]) != nullptr); }

Value hincrby(Command& c) {
  const long long by = integer(c[3]);
  auto* old = field(c.find<Redis::Hash>(c[1]), c[2]);
  long long sum = 0;
  if (__builtin_add_overflow(old != nullptr ? integer(*old, "ERR hash value is not an integer") : 0, by, &sum))
    throw Refusal{"ERR increment or decrement would overflow"};
  if (old != nullptr)
    *old = std::to_string(sum);
  else
    c.make<Redis::Hash>(c[1]).emplace_back(c[2], std::to_string(sum));
  return Value::of(sum);
}

// ---- lists

Value push(Command& c, bool left, bool only_old) {
  if (only_old && c.find<Redis::List>(c[1]) == nullptr)
    return Value::of(0);
  auto& list = c.make<Redis::List>(c[1]);
  for (std::size_t i = 2; i < c.size(); ++i) left ? list.push_front(c[i]) : list.push_back(c[i]);
  return Value::of(static_cast<long long>(list.size()));
}
Value rpush(Command& c) { return push(c, false, false); }
Value lpush(Command& c) { return push(c, true, false); }
Value rpushx(Command& c) { return push(c, false, true); }
Value lpushx(Command& c) { return push(c, true, true); }

Value pop(Command& c, bool left) {
  auto* list = c.find<Redis::List>(c[1]);
  if (list == nullptr)
    return {};
  Value value = Value::of(left ? list->front() : list->back());
  left ? list->pop_front() : list->pop_back();
  c.tidy<Redis::List>(c[1]);
  return value;
}
Value lpop(Command& c) { return pop(c, true); }
Value rpop(Command& c) { return pop(c, false); }

Value llen(Command& c) {
  const auto* list = c.find<Redis::List>(c[1]);
  return Value::of(list != nullptr ? static_cast<long long>(list->size()) : 0);
}

Value lrange(Command& c) {
  const long long start = integer(c[2]), stop = integer(c[3]);
  Value all = Value::array();
  if (const auto* list = c.find<Redis::List>(c[1])) {
    const auto [first, last] = range(start, stop, list->size());
    for (std::size_t i = first; i < last; ++i) all.add(Value::of((*list)[i]));
  }
  return all;
}

Value ltrim(Command& c) {
  const long long start = integer(c[2]), stop = integer(c[3]);
  if (auto* list = c.find<Redis::List>(c[1])) {
    const auto [first, last] = range(start, stop, list->size());
    *list = Redis::List(list->begin() + static_cast<long>(first), list->begin() + static_cast<long>(last));
    c.tidy<Redis::List>(c[1]);
  }
  return ok();
}

std::string* item(Redis::List* list, long long index) {
  if (list == nullptr)
    return nullptr;
  const auto length = static_cast<long long>(list->size());
  index += index < 0 ? length : 0;
  return index < 0 || index >= length ? nullptr : &(*list)[static_cast<std::size_t>(index)];
}

Value lindex(Command& c) { return text_or_nil(item(c.find<Redis::List>(c[1]), integer(c[2]))); }

Value lset(Command& c) {
  auto* list = c.find<Redis::List>(c[1]);
  if (list == nullptr)
    throw Refusal{"ERR no such key"};
  std::string* old = item(list, integer(c[2]));
  if (old == nullptr)
    throw Refusal{"ERR index out of range"};
  *old = c[3];
  return ok();
}

Value lrem(Command& c) {
  long long count = integer(c[2]), removed = 0;
  auto* list = c.find<Redis::List>(c[1]);
  if (list == nullptr)
    return Value::of(0);
  const bool backwards = count < 0;
  count = std::abs(count);
  if (backwards)
    std::reverse(list->begin(), list->end());
  for (auto it = list->begin(); it != list->end() && (count == 0 || removed < count);) {
    if (*it == c[3]) {
      it = list->erase(it);
      ++removed;
    } else {
      ++it;
    }
  }
  if (backwards)
    std::reverse(list->begin(), list->end());
  c.tidy<Redis::List>(c[1]);
  return Value::of(removed);
}

// ---- sets

Value sadd(Command& c) {
  auto& members = c.make<Redis::Set>(c[1]);
  long long added = 0;
  for (std::size_t i = 2; i < c.size(); ++i) added += members.insert(c[i]).second;
  return Value::of(added);
}

Value srem(Command& c) {
  auto* members = c.find<Redis::Set>(c[1]);
  long long removed = 0;
  for (std::size_t i = 2; members != nullptr && i < c.size(); ++i)
    removed += static_cast<long long>(members->erase(c[i]));
  c.tidy<Redis::Set>(c[1]);
  return Value::of(removed);
}

Value sismember(Command& c) {
  const auto* members = c.find<Redis::Set>(c[1]);
  return Value::of(members != nullptr && members->contains(c[2]));
}

Value smembers(Command& c) {
  Value all = Value::array();
  if (const auto* members = c.find<Redis::Set>(c[1])) {
    for (const std::string& name : *members) all.add(Value::of(name));
  }
  return all;
}

Value scard(Command& c) {
  const auto* members = c.find<Redis::Set>(c[1]);
  return Value::of(members != nullptr ? static_cast<long long>(members->size()) : 0);
}

// ---- sorted sets

Value zadd(Command& c) {
  bool nx = false, xx = false, gt = false, lt = false, changes = false;
  std::size_t i = 2;
  for (; i < c.size(); ++i) {
    if (is(c[i], "NX"))
      nx = true;
    else if (is(c[i], "XX"))
      xx = true;
    else if (is(c[i], "GT"))
      gt = true;
    else if (is(c[i], "LT"))
      lt = true;
    else if (is(c[i], "CH"))
      changes = true;
    else
      break;
  }
  if (i == c.size() || (c.size() - i) % 2 != 0)
    throw Refusal{syntax};
  if (nx && xx)
    throw Refusal{"ERR XX and NX options at the same time are not compatible"};
  if ((gt && nx) || (lt && nx) || (gt && lt))
    throw Refusal{"ERR GT, LT, and/or NX options at the same time are not compatible"};
  for (std::size_t k = i; k < c.size(); k += 2) real(c[k]);
  if (xx && c.find<Redis::Ranking>(c[1]) == nullptr)
    return Value::of(0);
  auto& ranking = c.make<Redis::Ranking>(c[1]);
  long long added = 0, updated = 0;
  for (; i < c.size(); i += 2) {
    const double score = real(c[i]);
    const auto old = member(ranking, c[i + 1]);
    if (old == ranking.end() ? xx : nx || (gt && score <= old->first) || (lt && score >= old->first))
      continue;
    if (old == ranking.end()) {
      ++added;
    } else {
      updated += old->first != score;
      ranking.erase(old);
    }
    const std::pair pair{score, c[i + 1]};
    ranking.insert(std::lower_bound(ranking.begin(), ranking.end(), pair), pair);
  }
  c.tidy<Redis::Ranking>(c[1]);
  return Value::of(added + (changes ? updated : 0));
}

Value zrem(Command& c) {
  auto* ranking = c.find<Redis::Ranking>(c[1]);
  long long removed = 0;
  for (std::size_t i = 2; ranking != nullptr && i < c.size(); ++i)
    removed += static_cast<long long>(std::erase_if(*ranking, [&](const auto& pair) { return pair.second == c[i]; }));
  c.tidy<Redis::Ranking>(c[1]);
  return Value::of(removed);
}

Value zcard(Command& c) {
  const auto* ranking = c.find<Redis::Ranking>(c[1]);
  return Value::of(ranking != nullptr ? static_cast<long long>(ranking->size()) : 0);
}

Value zscore(Command& c) {
  auto* ranking = c.find<Redis::Ranking>(c[1]);
  if (ranking == nullptr || member(*ranking, c[2]) == ranking->end())
    return {};
  return Value::of(score_text(member(*ranking, c[2])->first));
}

Value zrank(Command& c) {
  auto* ranking = c.find<Redis::Ranking>(c[1]);
  if (ranking == nullptr || member(*ranking, c[2]) == ranking->end())
    return {};
  return Value::of(member(*ranking, c[2]) - ranking->begin());
}

struct Bound {
  double score;
  bool open;
};
Bound bound(const std::string& word) {
  const bool open = word.starts_with('(');
  return {real(open ? word.substr(1) : word, "ERR min or max is not a float"), open};
}
bool above(double score, Bound min) { return min.open ? score > min.score : score >= min.score; }
bool below(double score, Bound max) { return max.open ? score < max.score : score <= max.score; }

void add_ranked(Value& all, const std::pair<double, std::string>& pair, bool with_scores) {
  all.add(Value::of(pair.second));
  if (with_scores)
    all.add(Value::of(score_text(pair.first)));
}

Value zrange_by_rank(Command& c, bool reverse) {
  const long long start = integer(c[2]), stop = integer(c[3]);
  bool with_scores = false;
  for (std::size_t i = 4; i < c.size(); ++i) {
    if (is(c[i], "WITHSCORES"))
      with_scores = true;
    else if (is(c[i], "REV") && is(c[0], "ZRANGE"))
      reverse = true;
    else
      throw Refusal{syntax};
  }
  Value all = Value::array();
  if (const auto* ranking = c.find<Redis::Ranking>(c[1])) {
    const auto [first, last] = range(start, stop, ranking->size());
    for (std::size_t i = first; i < last; ++i)
      add_ranked(all, (*ranking)[reverse ? ranking->size() - 1 - i : i], with_scores);
  }
  return all;
}
Value zrange(Command& c) { return zrange_by_rank(c, false); }
Value zrevrange(Command& c) { return zrange_by_rank(c, true); }

Value zrangebyscore(Command& c) {
  const Bound min = bound(c[2]), max = bound(c[3]);
  bool with_scores = false;
  long long skip = 0, most = -1;
  for (std::size_t i = 4; i < c.size(); ++i) {
    if (is(c[i], "WITHSCORES")) {
      with_scores = true;
    } else if (is(c[i], "LIMIT") && i + 2 < c.size()) {
      skip = integer(c[i + 1]);
      most = integer(c[i + 2]);
      i += 2;
    } else {
      throw Refusal{syntax};
    }
  }
  Value all = Value::array();
  const auto* ranking = c.find<Redis::Ranking>(c[1]);
  if (ranking == nullptr || skip < 0)
    return all;
  for (const auto& pair : *ranking) {
    if (!above(pair.first, min) || !below(pair.first, max) || skip-- > 0 || most == 0)
      continue;
    add_ranked(all, pair, with_scores);
    --most;
  }
  return all;
}

Value zcount(Command& c) {
  const Bound min = bound(c[2]), max = bound(c[3]);
  const auto* ranking = c.find<Redis::Ranking>(c[1]);
  const auto counts = [&](const auto& pair) { return above(pair.first, min) && below(pair.first, max); };
  return Value::of(ranking != nullptr ? std::count_if(ranking->begin(), ranking->end(), counts) : 0);
}

Value zremrangebyscore(Command& c) {
  const Bound min = bound(c[2]), max = bound(c[3]);
  auto* ranking = c.find<Redis::Ranking>(c[1]);
  if (ranking == nullptr)
    return Value::of(0);
  const auto removed =
      std::erase_if(*ranking, [&](const auto& pair) { return above(pair.first, min) && below(pair.first, max); });
  c.tidy<Redis::Ranking>(c[1]);
  return Value::of(static_cast<long long>(removed));
}

Value zremrangebyrank(Command& c) {
  const long long start = integer(c[2]), stop = integer(c[3]);
  auto* ranking = c.find<Redis::Ranking>(c[1]);
  if (ranking == nullptr)
    return Value::of(0);
  const auto [first, last] = range(start, stop, ranking->size());
  ranking->erase(ranking->begin() + static_cast<long>(first), ranking->begin() + static_cast<long>(last));
  c.tidy<Redis::Ranking>(c[1]);
  return Value::of(static_cast<long long>(last - first));
}

Value zpopmin(Command& c) {
  Value all = Value::array();
  auto* ranking = c.find<Redis::Ranking>(c[1]);
  if (ranking == nullptr)
    return all;
  add_ranked(all, ranking->front(), true);
  ranking->erase(ranking->begin());
  c.tidy<Redis::Ranking>(c[1]);
  return all;
}

// ---- messages

Value message(std::string kind, const std::string& channel, Value last) {
  Value all = Value::array();
  all.add(Value::of(std::move(kind)));
  all.add(Value::of(channel));
  all.add(std::move(last));
  return all;
}

Value publish(Command& c) {
  c.redis.published.emplace_back(c[1], c[2]);
  const auto found = c.redis.subscribers.find(c[1]);
  const long long watchers = c.redis.is_watched ? 1 : 0;
  if (found == c.redis.subscribers.end())
    return Value::of(watchers);
  for (const int session : found->second) c.redis.push(session, message("message", c[1], Value::of(c[2])));
  return Value::of(watchers + static_cast<long long>(found->second.size()));
}

Value channels_like(const Redis& redis, const std::string& beginning) {
  Value all = Value::array();
  for (const auto& [channel, sessions] : redis.subscribers) {
    if (!sessions.empty() && channel.starts_with(beginning))
      all.add(Value::of(channel));
  }
  return all;
}

Value pubsub(Command& c) {
  if (is(c[1], "CHANNELS") && c.size() == 3 && c[2].ends_with('*'))
    return channels_like(c.redis, c[2].substr(0, c[2].size() - 1));
  if (!is(c[1], "NUMSUB"))
    throw Refusal{fmt::format("ERR Unknown subcommand or wrong number of arguments for '{}'. Try PUBSUB HELP.", c[1])};
  Value all = Value::array();
  for (std::size_t i = 2; i < c.size(); ++i) {
    const auto found = c.redis.subscribers.find(c[i]);
    all.add(Value::of(c[i]));
    all.add(Value::of(found != c.redis.subscribers.end() ? static_cast<long long>(found->second.size()) : 0));
  }
  return all;
}

// ---- the server

Value time(Command& c) {
  Value both = Value::array();
  both.add(Value::of(std::to_string(c.redis.clock() / 1000000)));
  both.add(Value::of(std::to_string(c.redis.clock() % 1000000)));
  return both;
}

/// The uptime is the difference of two readings of the wall clock, each cut to seconds.
Value info(Command& c) {
  return Value::of(
      fmt::format("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:{}\r\n"
                  "uptime_in_seconds:{}\r\n",
                  c.redis.run_id,
                  c.redis.clock() / 1000000 - c.redis.started / 1000000));
}

Value role(Command& c) {
  Value all = Value::array();
  all.add(Value::of(c.redis.is_replica ? "slave" : "master"));
  all.add(Value::of(0LL));
  all.add(Value::array());
  return all;
}

Value auth(Command& c) {
  if (c.redis.password.empty() && c.size() == 2)
    throw Refusal{
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
        "configuration is correct?"};
  if (c[c.size() - 1] != c.redis.password)
    throw Refusal{"WRONGPASS invalid username-password pair or user is disabled."};
  c.session.authenticated = true;
  return ok();
}

Value select(Command& c) {
  if (integer(c[1], "ERR invalid DB index") != 0)
    throw Refusal{"ERR DB index is out of range"};
  return ok();
}

Value ping(Command& c) { return c.size() > 1 ? Value::of(c[1]) : Value::status("PONG"); }
Value echo(Command& c) { return Value::of(c[1]); }
Value wait(Command&) { return Value::of(0LL); }
Value eval(Command& c) { return c.redis.evaluate(c.session, c.words, false); }
Value evalsha(Command& c) { return c.redis.evaluate(c.session, c.words, true); }

Value script(Command& c) {
  if (is(c[1], "FLUSH")) {
    c.redis.forget_scripts();
    return ok();
  }
  if (is(c[1], "EXISTS")) {
    Value all = Value::array();
    for (std::size_t i = 2; i < c.size(); ++i) all.add(Value::of(c.redis.scripts_.contains(lower(c[i]))));
    return all;
  }
  if (!is(c[1], "LOAD") || c.size() != 3)
    throw Refusal{fmt::format("ERR unknown subcommand '{}'. Try SCRIPT HELP.", c[1])};
  const std::string& digest = digest_of(c[2]);
  if (auto error = compile_script(digest, c[2], c.redis.is_hasty); !error.empty())
    throw Refusal{std::move(error)};
  c.redis.scripts_.insert(digest);
  return Value::of(digest);
}

// ---- the table

enum : unsigned { reads = 0, writes = 1, grows = 2 /* refused when memory is short */, no_script = 4 };

struct Description {
  int arity;  // with the name; negative: at least
  unsigned flags;
  Value (*run)(Command&);
};

const std::unordered_map<std::string, Description>& table() {
  static const std::unordered_map<std::string, Description> commands{
      {"GET", {2, reads, get}},
      {"SET", {-3, writes | grows, set}},
      {"SETNX", {3, writes | grows, setnx}},
      {"GETDEL", {2, writes, getdel}},
      {"INCR", {2, writes | grows, incr}},
      {"DECR", {2, writes | grows, decr}},
      {"INCRBY", {3, writes | grows, incrby}},
      {"APPEND", {3, writes | grows, append}},
      {"STRLEN", {2, reads, strlen}},
      {"GETRANGE", {4, reads, getrange}},
      {"MGET", {-2, reads, mget}},
      {"EXISTS", {-2, reads, exists}},
      {"DEL", {-2, writes, del}},
      {"UNLINK", {-2, writes, del}},
      {"TYPE", {2, reads, type}},
      {"RENAME", {3, writes, rename}},
      {"EXPIRE", {-3, writes, expire_in_seconds}},
      {"PEXPIRE", {-3, writes, pexpire}},
      {"EXPIREAT", {-3, writes, expireat}},
      {"PEXPIREAT", {-3, writes, pexpireat}},
      {"PERSIST", {2, writes, persist}},
      {"TTL", {2, reads, ttl_in_seconds}},
      {"PTTL", {2, reads, pttl}},
      {"PEXPIRETIME", {2, reads, pexpiretime}},
      {"SCAN", {-2, reads, scan}},
      {"KEYS", {2, reads, keys}},
      {"DBSIZE", {1, reads, dbsize}},
      {"FLUSHALL", {-1, writes, flushall}},
      {"FLUSHDB", {-1, writes, flushall}},
      {"HSET", {-4, writes | grows, hset}},
      {"HMSET", {-4, writes | grows, hset}},
      {"HSETNX", {4, writes | grows, hsetnx}},
      {"HGET", {3, reads, hget}},
      {"HMGET", {-3, reads, hmget}},
      {"HGETALL", {2, reads, hgetall}},
      {"HKEYS", {2, reads, hkeys}},
      {"HVALS", {2, reads, hvals}},
      {"HSCAN", {-3, reads, hscan}},
      {"HDEL", {-3, writes, hdel}},
      {"HLEN", {2, reads, hlen}},
      {"HEXISTS", {3, reads, hexists}},
      {"HINCRBY", {4, writes | grows, hincrby}},
      {"RPUSH", {-3, writes | grows, rpush}},
      {"LPUSH", {-3, writes | grows, lpush}},
      {"RPUSHX", {-3, writes | grows, rpushx}},
      {"LPUSHX", {-3, writes | grows, lpushx}},
      {"LPOP", {2, writes, lpop}},
      {"RPOP", {2, writes, rpop}},
      {"LLEN", {2, reads, llen}},
      {"LRANGE", {4, reads, lrange}},
      {"LTRIM", {4, writes, ltrim}},
      {"LINDEX", {3, reads, lindex}},
      {"LSET", {4, writes | grows, lset}},
      {"LREM", {4, writes, lrem}},
      {"SADD", {-3, writes | grows, sadd}},
      {"SREM", {-3, writes, srem}},
      {"SISMEMBER", {3, reads, sismember}},
      {"SMEMBERS", {2, reads, smembers}},
      {"SCARD", {2, reads, scard}},
      {"ZADD", {-4, writes | grows, zadd}},
      {"ZREM", {-3, writes, zrem}},
      {"ZCARD", {2, reads, zcard}},
      {"ZSCORE", {3, reads, zscore}},
      {"ZRANK", {3, reads, zrank}},
      {"ZRANGE", {-4, reads, zrange}},
      {"ZREVRANGE", {-4, reads, zrevrange}},
      {"ZRANGEBYSCORE", {-4, reads, zrangebyscore}},
      {"ZCOUNT", {4, reads, zcount}},
      {"ZREMRANGEBYSCORE", {4, writes, zremrangebyscore}},
      {"ZREMRANGEBYRANK", {4, writes, zremrangebyrank}},
      {"ZPOPMIN", {2, writes, zpopmin}},
      {"PUBLISH", {3, reads, publish}},
      {"PUBSUB", {-2, reads, pubsub}},
      {"TIME", {1, reads, time}},
      {"INFO", {-1, reads, info}},
      {"ROLE", {1, reads | no_script, role}},
      {"AUTH", {-2, reads | no_script, auth}},
      {"SELECT", {2, reads, select}},
      {"PING", {-1, reads, ping}},
      {"ECHO", {2, reads, echo}},
      {"WAIT", {3, reads | no_script, wait}},
      {"EVAL", {-3, reads | no_script, eval}},
      {"EVALSHA", {-3, reads | no_script, evalsha}},
      {"SCRIPT", {-2, reads | no_script, script}}};
  return commands;
}

bool fits(int arity, std::size_t count) {
  const auto n = static_cast<int>(count);
  return arity < 0 ? n >= -arity : n == arity;
}

}  // namespace

Value Redis::run(Session& session, const Words& words, bool from_script) {
  const std::string name = upper(words[0]);
  const auto found = table().find(name);
  if (found == table().end())
    return Value::error(from_script ? "ERR Unknown Redis command called from script"
                                    : fmt::format("ERR unknown command '{}'", words[0]));
  const Description& command = found->second;
  if (!fits(command.arity, words.size()))
    return Value::error(from_script ? "ERR Wrong number of args calling Redis command from script"
                                    : fmt::format("ERR wrong number of arguments for '{}' command", lower(name)));
  if (from_script && (command.flags & no_script) != 0)
    return Value::error("ERR This Redis command is not allowed from script");
  if (!password.empty() && !session.authenticated && name != "AUTH")
    return Value::error("NOAUTH Authentication required.");
  if (denied.contains(name))
    return Value::error(from_script
                            ? "ERR The user executing the script can't run this command or subcommand"
                            : fmt::format("NOPERM this user has no permissions to run the '{}' command", lower(name)));
  if (is_replica && (command.flags & writes) != 0)
    return Value::error("READONLY You can't write against a read only replica.");
  const bool short_of_memory = from_script ? script_began_full_ && !script_has_written_ : is_full;
  if (short_of_memory && (command.flags & grows) != 0)
    return Value::error("OOM command not allowed when used memory > 'maxmemory'.");
  if (from_script && (command.flags & writes) != 0)
    script_has_written_ = true;
  Command running{*this, session, words};
  try {
    return command.run(running);
  } catch (const Refusal& refusal) {
    return Value::error(refusal.words);
  }
}

Value Redis::call_from_script(Session& session, const Words& words) { return run(session, words, true); }

Value Redis::evaluate(Session& session, const Words& words, bool by_digest) {
  const long long count = integer(words[2]);
  if (count > static_cast<long long>(words.size()) - 3)
    return Value::error("ERR Number of keys can't be greater than number of args");
  if (count < 0)
    return Value::error("ERR Number of keys can't be negative");
  const std::string digest = by_digest ? lower(words[1]) : digest_of(words[1]);
  if (by_digest && !scripts_.contains(digest))
    return Value::error("NOSCRIPT No matching script. Please use EVAL.");
  if (!by_digest) {
    if (auto error = compile_script(digest, words[1], is_hasty); !error.empty())
      return Value::error(std::move(error));
    scripts_.insert(digest);
  }
  published.clear();
  script_began_full_ = is_full;
  script_has_written_ = false;
  const auto middle = words.begin() + 3 + count;
  return run_script(*this, session, digest, Words(words.begin() + 3, middle), Words(middle, words.end()));
}

void Redis::execute(Session& session, const Words& words, std::vector<Value>& replies) {
  const std::string name = upper(words[0]);
  const bool subscribes = name == "SUBSCRIBE";
  if (!subscribes && name != "UNSUBSCRIBE") {
    const bool may = session.channels.empty() || name == "PING";
    replies.push_back(may ? run(session, words, false)
                          : Value::error(fmt::format("ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / "
                                                     "PING / QUIT / RESET are allowed in this context",
                                                     lower(name))));
    return;
  }
  if (denied.contains(name)) {
    replies.push_back(
        Value::error(fmt::format("NOPERM this user has no permissions to run the '{}' command", lower(name))));
    return;
  }
  Words channels(words.begin() + 1, words.end());
  if (channels.empty() && !subscribes)
    channels.assign(session.channels.begin(), session.channels.end());
  for (const std::string& channel : channels) {
    if (subscribes) {
      session.channels.insert(channel);
      subscribers[channel].insert(session.id);
    } else {
      session.channels.erase(channel);
      subscribers[channel].erase(session.id);
    }
    replies.push_back(message(lower(name), channel, Value::of(static_cast<long long>(session.channels.size()))));
  }
  if (channels.empty())
    replies.push_back(message(lower(name), "", Value::of(0LL)));
}

void Redis::forget(Session& session) {
  for (const std::string& channel : session.channels) {
    subscribers[channel].erase(session.id);
    if (subscribers[channel].empty())
      subscribers.erase(channel);
  }
  session.channels.clear();
}

void encode(const Value& value, std::string& out) {
  switch (value.kind) {
    case Kind::nil:
      out += "$-1\r\n";
      break;
    case Kind::status:
      out += fmt::format("+{}\r\n", value.text);
      break;
    case Kind::error:
      out += fmt::format("-{}\r\n", value.text);
      break;
    case Kind::integer:
      out += fmt::format(":{}\r\n", value.integer);
      break;
    case Kind::text:
      out += fmt::format("${}\r\n{}\r\n", value.text.size(), value.text);
      break;
    case Kind::array:
      out += fmt::format("*{}\r\n", value.elements.size());
      for (const Value& element : value.elements) encode(element, out);
      break;
  }
}

std::string to_string(const Value& value) {
  std::string out;
  switch (value.kind) {
    case Kind::nil:
      return "nil";
    case Kind::integer:
      return std::to_string(value.integer);
    case Kind::status:
      return value.text;
    case Kind::error:
      return "-" + value.text;
    case Kind::text:
      for (const char c : value.text) out += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '.';
      return '"' + out + '"';
    case Kind::array:
      for (const Value& element : value.elements) out += (out.empty() ? "" : " ") + to_string(element);
      return "[" + out + "]";
  }
  return out;
}

}  // namespace sim
