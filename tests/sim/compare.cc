// rlock-sim --compare SOCKET: the model beside a real redis-server.

#include "compare.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "base/sha1.h"
#include "random.h"
#include "redis.h"

namespace sim {
namespace {

using Kind = Value::Kind;

struct Free {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

Value convert(const redisReply& reply) {
  const std::string text{reply.str != nullptr ? reply.str : "", reply.str != nullptr ? reply.len : 0};
  switch (reply.type) {
    case REDIS_REPLY_STATUS:
      return Value::status(text);
    case REDIS_REPLY_STRING:
      return Value::of(text);
    case REDIS_REPLY_INTEGER:
      return Value::of(reply.integer);
    case REDIS_REPLY_ERROR:
      return Value::error(text);
    case REDIS_REPLY_ARRAY: {
      Value all = Value::array();
      for (std::size_t i = 0; i < reply.elements; ++i) all.add(convert(*reply.element[i]));
      return all;
    }
    default:
      return {};
  }
}

class Real {
 public:
  explicit Real(const std::string& socket) : context_(redisConnectUnix(socket.c_str())) {
    if (context_ == nullptr || context_->err != 0)
      throw std::runtime_error("no redis-server at " + socket);
  }

  Value execute(const Words& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    const std::unique_ptr<redisReply, Free> reply{static_cast<redisReply*>(
        redisCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data()))};
    if (reply == nullptr)
      throw std::runtime_error("the server is gone");
    return convert(*reply);
  }

 private:
  std::unique_ptr<redisContext, Free> context_;
};

/// What a script may return, and what it may do wrong.
constexpr std::array scripts{
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "local ok, e = pcall(redis.call, unpack(ARGV)) return {tostring(ok), type(e) == 'table' and (e.err or e.ok) or e}",
    "local r = redis.call(unpack(ARGV)) return type(r)",
    "local r = redis.pcall(unpack(ARGV)) return type(r) == 'table' and {#r, r.ok or 'no', r.err or 'no'} or "
    "tostring(r)",
    "return {1, 2.9, -2.9, 'x', true, false, nil, 'unseen'}",
    "return {KEYS[1], ARGV[1] or 'none', #KEYS, #ARGV, ARGV[9]}",
    "return redis.sha1hex(ARGV[1] or '')",
    "return redis.status_reply('FINE')",
    "return redis.error_reply('MYERR what')",
    "return {err = 'MYERR table'}",
    "return {ok = 'GOOD'}",
    "return undefined_global",
    "new_global = 1",
    "error('own words')",
    "error({err = 'TABLE error'})",
    "return 3.99",
    "return -3.99",
    "return 12345678901234",
    "return tostring(12345678901234567)",
    "return {{1, {2, {3}}}, 'x'}",
    "return nil",
    "return redis.call('SET', KEYS[1], 1.5)",
    "return redis.call('SET', KEYS[1], 9007199254740991)",
    "return redis.call('SET', KEYS[1], {})",
    "return redis.call()",
    "return redis.call('NOSUCH')",
    "return redis.call('GET')",
    "return redis.call('SUBSCRIBE', 'x')",
    "local t = {} for i = 1, 300 do t[i] = i end return redis.call('RPUSH', KEYS[1], unpack(t))",
    "for _, w in ipairs({'b', 'a'}) do redis.call('ZADD', KEYS[1], 5, w) end return redis.call('ZRANGE', KEYS[1], 0, "
    "-1)",
    "return string.format('%.0f %d %s', 1e15, 3, 'x')",
    "return {tonumber('0x10'), tonumber('x'), 5}",
    "return ('a=b c=d'):match('^([%a-]+)=(%S*)')",
    "syntax error",
};

/// Each word is a command, its arguments drawn at random: k key, v value, n number, s score, r rank, o option of the
/// command before it.
constexpr std::array forms{
    "GET k",
    "SET k v",
    "SET k v o",
    "SET k v o t",
    "SETNX k v",
    "GETDEL k",
    "INCR k",
    "DECR k",
    "INCRBY k n",
    "APPEND k v",
    "STRLEN k",
    "GETRANGE k r r",
    "MGET k k",
    "EXISTS k k",
    "DEL k",
    "UNLINK k",
    "TYPE k",
    "PEXPIRE k t",
    "PEXPIRE k t O",
    "EXPIRE k n",
    "PEXPIREAT k T",
    "PERSIST k",
    "PTTL k",
    "PEXPIRETIME k",
    "HSET k v v",
    "HSET k v v v v",
    "HSET k v",
    "HMSET k v n",
    "HSETNX k v v",
    "HGET k v",
    "HMGET k v v",
    "HGETALL k",
    "HKEYS k",
    "HVALS k",
    "HSCAN k 0",
    "HDEL k v",
    "HDEL k v v",
    "HLEN k",
    "HEXISTS k v",
    "HINCRBY k v n",
    "RPUSH k v",
    "RPUSH k v v v",
    "LPUSH k v v",
    "RPUSHX k v",
    "LPUSHX k v",
    "LPOP k",
    "RPOP k",
    "LLEN k",
    "LRANGE k r r",
    "LTRIM k r r",
    "LINDEX k r",
    "LSET k r v",
    "LREM k r v",
    "SADD k v v",
    "SREM k v",
    "SISMEMBER k v",
    "SCARD k",
    "ZADD k s v",
    "ZADD k z s v",
    "ZADD k z s v s v",
    "ZADD k s v s",
    "ZADD k z",
    "ZREM k v",
    "ZREM k v v",
    "ZCARD k",
    "ZSCORE k v",
    "ZRANK k v",
    "ZRANGE k r r",
    "ZRANGE k r r WITHSCORES",
    "ZRANGE k r r REV",
    "ZREVRANGE k r r",
    "ZRANGEBYSCORE k b b",
    "ZRANGEBYSCORE k b b LIMIT n n",
    "ZRANGEBYSCORE k b b WITHSCORES",
    "ZCOUNT k b b",
    "ZREMRANGEBYSCORE k b b",
    "ZREMRANGEBYRANK k r r",
    "ZPOPMIN k",
    "RENAME k k",
    "PUBLISH v v",
    "PUBSUB NUMSUB v",
    "PING",
    "ECHO v",
    "NOSUCH v",
    "GET",
    "ROLE v",
    "WAIT 0 0",
    "SCRIPT FLUSH",
    "SELECT 0",
    "SELECT x",
};

class Comparison {
 public:
  Comparison(const std::string& socket, std::uint64_t seed) : real_(socket), random_(seed) {
    model_.clock = [] {
      using namespace std::chrono;
      return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
    };
    model_.push = [](int, const Value&) {};
    real_.execute({"FLUSHALL"});
    real_.execute({"SCRIPT", "FLUSH"});
  }

  /// Returns how many replies differed.
  int run(long commands) {
    int differences = 0;
    for (long i = 0; i < commands && differences < 10; ++i) {
      const Words words = random_.below(4) == 0 ? random_script() : random_command();
      std::vector<Value> replies;
      const Value theirs = real_.execute(words);
      model_.execute(session_, words, replies);
      if (same(words, theirs, replies.at(0)))
        continue;
      ++differences;
      std::string line;
      for (const std::string& word : words) line += to_string(Value::of(word)) + " ";
      fmt::print("{}: {}\n  redis-server  {}\n  model         {}\n", i, line, to_string(theirs), to_string(replies[0]));
    }
    return differences;
  }

 private:
  template <typename List>
  std::string one_of(const List& list) {
    return std::string{*(std::begin(list) + random_.below(std::size(list)))};
  }

  Words random_command() {
    Words words;
    const std::string form = one_of(forms);
    for (std::size_t at = 0; at < form.size();) {
      const std::size_t end = std::min(form.find(' ', at), form.size());
      words.push_back(fill(form.substr(at, end - at)));
      at = end + 1;
    }
    return words;
  }

  std::string fill(const std::string& word) {
    using namespace std::string_view_literals;
    static constexpr std::array keys{"a"sv, "b"sv, "c"sv, "d"sv, "e"sv};
    static constexpr std::array values{"x"sv, "y"sv, "z"sv, "7"sv, ""sv, "two words"sv, "\0\xff"sv, "10"sv};
    static constexpr std::array numbers{"0"sv, "1"sv, "-1"sv, "7"sv, "x"sv, "9223372036854775807"sv, "007"sv};
    static constexpr std::array ranks{"0"sv, "1"sv, "-1"sv, "2"sv, "-2"sv, "100"sv, "-100"sv};
    static constexpr std::array scores{"1"sv, "2"sv, "2.5"sv, "-1"sv, "1795215005718450"sv, "x"sv, "inf"sv};
    static constexpr std::array bounds{"-inf"sv, "+inf"sv, "(1"sv, "2"sv, "(2.5"sv, "x"sv};
    static constexpr std::array times{"100000"sv, "200000"sv, "-1"sv, "0"sv, "x"sv, "99999999999999"sv};
    static constexpr std::array set_options{"NX"sv, "XX"sv, "GET"sv, "PX"sv, "KEEPTTL"sv, "BAD"sv};
    static constexpr std::array expire_options{"NX"sv, "XX"sv, "GT"sv, "LT"sv, "BAD"sv};
    static constexpr std::array zadd_options{"NX"sv, "XX"sv, "GT"sv, "LT"sv, "CH"sv};
    if (word.size() != 1)
      return word;
    switch (word[0]) {
      case 'k':
        return one_of(keys);
      case 'v':
        return one_of(values);
      case 'n':
        return one_of(numbers);
      case 'r':
        return one_of(ranks);
      case 's':
        return one_of(scores);
      case 'b':
        return one_of(bounds);
      case 't':
        return one_of(times);
      case 'T':
        return std::to_string(model_.now() + random_.below(200000) - 50000);
      case 'o':
        return one_of(set_options);
      case 'O':
        return one_of(expire_options);
      case 'z':
        return one_of(zadd_options);
      default:
        return word;
    }
  }

  Words random_script() {
    const std::string source = one_of(scripts);
    const bool by_digest = random_.below(2) == 0;
    if (by_digest && random_.below(2) == 0)
      return {"SCRIPT", "LOAD", source};
    Words words{by_digest ? "EVALSHA" : "EVAL", by_digest ? rlock::sha1_hex(source) : source, "1", fill("k")};
    Words command = random_command();
    while (command[0] == "WAIT") command = random_command();  // only newer servers let a script wait; none of ours does
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }

  /// Errors need only begin with the same word. Times may differ by the time between the two questions.
  bool same(const Words& words, const Value& theirs, const Value& ours) {
    if (theirs.is_error() && ours.is_error())
      return theirs.text.substr(0, theirs.text.find(' ')) == ours.text.substr(0, ours.text.find(' '));
    if (theirs.kind == Kind::integer && ours.kind == Kind::integer && std::abs(theirs.integer - ours.integer) < 1000)
      return theirs.integer == ours.integer || says_time(words);
    if (theirs.kind == Kind::array && ours.kind == Kind::array && theirs.elements.size() == ours.elements.size()) {
      for (std::size_t i = 0; i < ours.elements.size(); ++i) {
        if (!same(words, theirs.elements[i], ours.elements[i]))
          return false;
      }
      return true;
    }
    return theirs == ours || says_words_of_an_error(theirs, ours) || (says_time(words) && theirs.kind == ours.kind);
  }

  static bool says_time(const Words& words) {
    return std::find(words.begin(), words.end(), "PTTL") != words.end() ||
           std::find(words.begin(), words.end(), "PEXPIRETIME") != words.end();
  }

  /// A script that returns the text of an error.
  static bool says_words_of_an_error(const Value& theirs, const Value& ours) {
    const auto begins = [](const Value& v) { return v.kind == Kind::text ? v.text.substr(0, v.text.find(' ')) : ""; };
    static const std::set<std::string> codes{"ERR", "WRONGTYPE"};
    return theirs.kind == Kind::text && begins(theirs) == begins(ours) && codes.contains(begins(ours));
  }

  Real real_;
  Redis model_;
  Session session_;
  Random random_;
};

}  // namespace

int compare(const std::string& socket, std::uint64_t seed, long commands) {
  return Comparison{socket, seed}.run(commands);
}

}  // namespace sim
