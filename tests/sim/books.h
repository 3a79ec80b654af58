#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis.h"

namespace sim {

/// What a server knows of the lock, read from its keys by somebody who has not written the scripts: rlock-protocol.7
/// says what stands there. A record that cannot be read makes the books `garbled`.
struct Books {
  /// A holder, or somebody whose place cools.
  struct Record {
    long long expires = 0, cools = 0, ttl = 0, hold = 0, fence = 0, slot = 0, acquired = 0, waited = 0, kept = 0;
    std::string levels, tail;

    long long until() const { return std::max(expires, cools); }
    std::vector<std::string> level_names() const;
    /// Until when each of them counts on it; none if there was only one ever.
    std::vector<long long> level_ends() const;
    friend bool operator==(const Record&, const Record&) = default;
  };
  struct Waiter {
    std::string token;
    double score = 0;
    long long capacity = 0, asked = 0, alive = 0, ticket = 0;
    std::string level;
    long long ttl = 0, hold = 0, born = 0, kept = 0;
    std::string tail;
    friend bool operator==(const Waiter&, const Waiter&) = default;
  };
  /// An acquisition in progress, as the memory has it.
  struct Running {
    long long capacity = 0, fence = 0, acquired = 0, waited = 0, lasts = 0;
    std::string tail;
    friend bool operator==(const Running&, const Running&) = default;
  };
  /// How an acquisition ended.
  struct Ending {
    long long fence = 0, acquired = 0, ended = 0, waited = 0, capacity = 0;
    std::string how;
    friend bool operator==(const Ending&, const Ending&) = default;
  };
  /// The last that asked with --latest or --replace.
  struct Newest {
    long long born = 0;
    std::string level, token;
  };
  /// A run that failed and that --backoff or --attempts count.
  struct Failure {
    long long fence = 0, acquired = 0, ended = 0;
    std::string how, id;
  };
  struct Success {
    long long granted = 0, ended = 0;
    std::string id;
  };

  std::string garbled;
  bool is_foreign = false;
  bool has_seats = false;  // as a crowd has
  long long seen = 0;      // the fields of a crowd that have those names
  std::string slots{};
  std::optional<long long> capacity{};  // as the key says; nothing if there is none
  std::map<std::string, Record> records{};
  std::vector<Waiter> queue{};
  std::map<std::string, std::string, std::less<>> memory{};
  long long floor = 0, grants = 0, evicted = 0, lost = 0, failed = 0;
  std::map<std::string, Running> running{};
  std::vector<Ending> history{};
  std::map<std::string, long long> expiries{};  // of the lock's own keys, where they have one

  static Books read(const Redis& redis, const Words& keys);

  const Record* holder(const std::string& token, long long now) const;
  const Record* record(const std::string& token) const;
  const Waiter* waiter(const std::string& token) const;
  long rank(const std::string& token) const;  // -1: it is not in the queue
  const Ending* ending(long long fence) const;
  const std::string& recall(std::string_view field) const;
  long long held_back_until() const;
  std::vector<Success> successes() const;
  std::vector<Failure> failures() const;
  Newest newest() const;
  long long skipped() const;
  bool says_the_same(const Books& other) const;
};

/// How a record of a later version begins, which nobody here can read.
constexpr std::string_view alien_record = "v9 ";

/// The words of a text, and one of the extras at its end; empty if there is none.
Words split(std::string_view text, char at = ' ');
std::string extra(std::string_view tail, std::string_view name);

}  // namespace sim
