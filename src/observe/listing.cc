#include "observe/listing.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/escape.h"
#include "base/word.h"

namespace rlock::observe {
namespace {

constexpr std::chrono::minutes longest_scan{10};
constexpr int first_batch = 1000, largest_batch = 20'000;  // keys; the largest takes Redis 4 to 15 ms
constexpr std::string_view meta = ":meta";
constexpr std::string_view hold_mark = ":hold";
constexpr std::size_t meta_key = 3;  // where it stands in LockName::keys()

/// Empty for a key that no lock can have.
std::optional<lock::LockName> name_of(const std::string& prefix, std::string_view key) {
  if (!key.starts_with(prefix))
    return std::nullopt;
  try {
    return lock::LockName{prefix, key.substr(prefix.size())};
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The lock with this companion, which ends like that: "{L}:meta", or "L:meta" where L has a hash tag of its own.
std::optional<lock::LockName> lock_of_companion(const std::string& prefix,
                                                std::string_view key,
                                                std::string_view suffix) {
  const std::string_view base = key.substr(0, key.size() - suffix.size());
  const bool braced = base.size() > 2 && base.front() == '{' && base.back() == '}';
  for (const std::string_view lock : {braced ? base.substr(1, base.size() - 2) : base, base}) {
    if (auto name = name_of(prefix, lock);
        name && (suffix == hold_mark ? name->hold_mark() : name->keys()[meta_key]) == key)
      return name;
  }
  return std::nullopt;
}

std::optional<lock::LockName> lock_of_key(const Scope& scope, std::string_view key) {
  if (!lock::is_companion_key(key))
    return name_of(scope.prefix, key);
  if (key.ends_with(hold_mark))
    return lock_of_companion(scope.prefix, key, hold_mark);
  return scope.remembered && key.ends_with(meta) ? lock_of_companion(scope.prefix, key, meta) : std::nullopt;
}

/// One SCAN over all keys of a server. If there are more than a few, it asks for as many at a time as other users of
/// the server will not notice: each batch is a round trip, and no batch can be asked for before the last one has come.
class Scan {
 public:
  Scan(redis::Server& server, const Scope& scope)
      : server_(server),
        pattern_("*" + glob_escape(scope.prefix) + "*"),  // the companions of a lock may begin with a brace
        // Without a prefix most keys are not locks, and the locks that can be recognised are hashes.
        only_hashes_(scope.prefix.empty()) {}

  bool at_end() const { return cursor_ == "0" && begun_; }

  /// Returns the next batch of keys.
  std::vector<redis::Reply> next(Deadline deadline) {
    redis::Command scan{"SCAN", cursor_, "MATCH", pattern_, "COUNT", std::to_string(count_)};
    count_ = largest_batch;
    if (only_hashes_)
      scan.insert(scan.end(), {"TYPE", "hash"});
    auto replies = server_.call({scan}, deadline);
    if (only_hashes_ && replies[0].is_error("ERR")) {  // Redis 5 cannot filter
      only_hashes_ = false;
      return next(deadline);
    }
    redis::check_reply(server_.address(), replies[0]);
    auto& parts = replies[0].elements;
    if (parts.size() != 2 || !is_cursor(parts[0]) || (parts[0].text == cursor_ && cursor_ != "0"))
      refuse("the answer to SCAN makes no sense");
    cursor_ = parts[0].text;
    begun_ = true;
    if (BootClock::now() > end_)
      refuse("SCAN does not end");
    return std::move(parts[1].elements);
  }

 private:
  static bool is_cursor(const redis::Reply& reply) {
    return reply.kind == redis::Reply::Kind::text && is_digits(reply.text) && !reply.text.empty() &&
           reply.text.size() <= 20;
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error{ExitCode::unavailable, server_.address().url + ": " + std::string{what}, true};
  }

  redis::Server& server_;
  std::string pattern_;
  std::string cursor_ = "0";
  Deadline end_ = BootClock::now() + longest_scan;
  bool only_hashes_;
  bool begun_ = false;
  int count_ = first_batch;
};

/// Adds the keys that are locks of the scope.
void add_locks(const std::vector<redis::Reply>& keys,
               const Scope& scope,
               Budget& budget,
               std::vector<lock::LockName>& found) {
  for (const redis::Reply& key : keys) {
    auto name = lock_of_key(scope, key.text);
    if (!name || !scope.includes(name->text()))
      continue;
    budget.spend(sizeof(*name) + 3 * name->key().size());
    found.push_back(*std::move(name));
  }
}

}  // namespace

void Budget::spend(std::size_t bytes) {
  if (bytes > left_) {
    throw Error{
        ExitCode::unavailable,
        server_.address().url + ": it sent more than 128 MB about its locks; name the locks, or narrow --prefix",
        true};
  }
  left_ -= bytes;
}

void Budget::spend(const redis::Reply& reply) {
  spend(sizeof(reply) + reply.text.size());
  for (const redis::Reply& element : reply.elements) spend(element);
}

bool is_pattern(std::string_view word) { return word.find_first_of("*?[") != std::string_view::npos; }

bool Scope::includes(const std::string& name) const {
  const auto matches = [&](const std::string& pattern) {
    return pattern == name || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  };
  return patterns.empty() || std::any_of(patterns.begin(), patterns.end(), matches);
}

std::vector<lock::LockName> list_locks(redis::Server& server,
                                       const Scope& scope,
                                       Milliseconds timeout,
                                       Budget& budget) {
  std::vector<lock::LockName> names;
  for (Scan scan{server, scope}; !scan.at_end();)
    add_locks(scan.next(BootClock::now() + timeout), scope, budget, names);
  const auto less = [](const lock::LockName& a, const lock::LockName& b) { return a.text() < b.text(); };
  std::sort(names.begin(), names.end(), less);
  names.erase(std::unique(names.begin(), names.end()), names.end());  // SCAN may return a key twice
  return names;
}

std::vector<lock::LockName> sample_locks(redis::Server& server,
                                         const Scope& scope,
                                         Milliseconds timeout,
                                         Budget& budget) {
  std::vector<lock::LockName> names;
  add_locks(Scan{server, scope}.next(BootClock::now() + timeout), scope, budget, names);
  return names;
}

}  // namespace rlock::observe
