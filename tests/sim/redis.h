#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sim {

/// A reply of Redis, or what a script makes of one.
struct Value {
  enum class Kind { nil, status, text, integer, error, array };

  Kind kind = Kind::nil;
  std::string text;  // of status, text and error
  long long integer = 0;
  std::vector<Value> elements;

  static Value status(std::string words) { return {Kind::status, std::move(words), 0, {}}; }
  static Value of(std::string words) { return {Kind::text, std::move(words), 0, {}}; }
  static Value of(long long number) { return {Kind::integer, {}, number, {}}; }
  static Value error(std::string words) { return {Kind::error, std::move(words), 0, {}}; }
  static Value array() { return {Kind::array, {}, 0, {}}; }

  bool is_error() const { return kind == Kind::error; }
  void add(Value element) { elements.push_back(std::move(element)); }
  friend bool operator==(const Value&, const Value&) = default;
};

/// In RESP2.
void encode(const Value& value, std::string& out);
/// For people: one line, with what is unprintable escaped.
std::string to_string(const Value& value);

using Words = std::vector<std::string>;

/// What Redis keeps of one client.
struct Session {
  int id = 0;
  bool authenticated = false;
  std::set<std::string> channels;
};

/// One Redis server without its sockets: a database in memory, and the commands that rlock's scripts use or might come
/// to use. Replies are those of Redis 7.0, which `rlock-sim --compare` checks against the real one. Scripts run in real
/// Lua 5.1. It owns neither time nor network: it asks `clock` what time it is, and hands what is published to `push`.
class Redis {
 public:
  using Hash = std::vector<std::pair<std::string, std::string>>;  // in the order of a listpack: as they were added
  using List = std::deque<std::string>;
  using Set = std::set<std::string>;
  using Ranking = std::vector<std::pair<double, std::string>>;  // a sorted set: by score, then by member
  struct Entry {
    std::variant<std::string, Hash, List, Set, Ranking> value;
    long long expires = -1;  // ms of the server's clock; -1: never
  };
  using Database = std::map<std::string, Entry, std::less<>>;

  std::function<long long()> clock;                     // wall time in us
  std::function<void(int session, const Value&)> push;  // messages to subscribers
  std::string password;                                 // empty: none is asked for
  std::string run_id;
  long long started = 0;         // us of the clock
  bool is_full = false;          // maxmemory: commands that may need more memory are refused
  bool is_replica = false;       // writes are refused
  bool is_watched = false;       // somebody subscribes to all channels by a pattern
  bool is_hasty = false;         // its scripts stop early in long lists, as they do with a crowd
  std::set<std::string> denied;  // commands that the user may not run

  /// Runs one command. A reply to SUBSCRIBE and the like goes through push too, so `replies` may stay empty.
  void execute(Session& session, const Words& words, std::vector<Value>& replies);
  /// For scripts.
  Value call_from_script(Session& session, const Words& words);

  void forget(Session& session);
  void forget_scripts() { scripts_.clear(); }
  long long now() const { return clock() / 1000; }

  // The commands see these.
  Database data;
  std::map<std::string, std::set<int>, std::less<>> subscribers;
  Value evaluate(Session& session, const Words& words, bool by_digest);
  std::set<std::string> scripts_;                              // digests that it knows
  std::vector<std::pair<std::string, std::string>> published;  // by the last script: channel, message

 private:
  friend struct Command;
  Value run(Session& session, const Words& words, bool from_script);

  bool script_began_full_ = false;
  bool script_has_written_ = false;
};

/// Runs a script that the server knows, or gives its text. All servers share a script's interpreter, since it can leave
/// nothing behind in it.
Value run_script(Redis& redis, Session& session, const std::string& digest, const Words& keys, const Words& arguments);
/// The SHA1 of a script. Most scripts are sent again and again.
const std::string& digest_of(const std::string& source);
/// Compiles it, unless it is known. Returns the error, or an empty text.
std::string compile_script(const std::string& digest, const std::string& source, bool is_hasty);

/// From now on servers run what that folder has for the scripts of the program, which need not be built for that.
void replace_scripts(const std::string& folder);

using Lines = std::map<std::string, std::set<int>>;  // digest of a script -> lines
/// From now on it is noted which lines of the scripts run, which takes time.
void count_lines();
const Lines& lines_run();

}  // namespace sim
