#include "observe/fitness.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/number.h"
#include "lock/permissions.h"
#include "lock/retry.h"
#include "observe/clock_step.h"
#include "observe/rehearsal.h"
#include "observe/summary.h"
#include "observe/survey.h"
#include "redis/exchange.h"
#include "redis/refusal.h"

namespace rlock::observe {
namespace {

using Grade = Finding::Grade;
using std::chrono::duration_cast;
using std::chrono::microseconds;

constexpr int attempts = 5;  // the fastest answer counts
constexpr std::chrono::seconds tolerable_skew{2};

/// The answer to INFO: lines of `name:value`.
class Info {
 public:
  explicit Info(std::string_view text) : text_(fmt::format("\n{}", text)) {}

  std::string_view value(std::string_view name) const {
    const auto line = text_.find(fmt::format("\n{}:", name));
    if (line == std::string::npos)
      return {};
    const auto begin = line + name.size() + 2;
    return std::string_view{text_}.substr(begin, text_.find_first_of("\r\n", begin) - begin);
  }
  long long number(std::string_view name) const { return parse_number<long long>(value(name)).value_or(0); }

 private:
  std::string text_;
};

struct Version {
  int major = 0, minor = 0;

  static Version read(std::string_view text) {
    Version version;
    const char* const end = text.data() + text.size();
    const char* const dot = std::from_chars(text.data(), end, version.major).ptr;
    if (dot != end)
      std::from_chars(dot + 1, end, version.minor);
    return version;
  }
  friend auto operator<=>(const Version&, const Version&) = default;
};

constexpr Version oldest_supported{5, 0}, first_with_users{6, 0}, first_with_channel_rules{6, 2};

/// Stands in for the version of a server that does not tell its own.
constexpr Version newest{99, 0};

Finding judge_version(const Info& info) {
  const std::string_view compatible = info.value("redis_version");
  const std::string_view valkey = info.value("valkey_version");
  std::string text =
      valkey.empty() ? fmt::format("Redis {}", compatible) : fmt::format("Valkey {}, as Redis {}", valkey, compatible);
  if (Version::read(compatible) >= oldest_supported)
    return {Grade::ok, "version", text};
  return {Grade::fail, "version", text + "; 5.0 or later is needed"};
}

Finding judge_role(const Info& info) {
  if (info.value("role") == "master")
    return {Grade::ok, "role", "master"};
  return {
      Grade::fail,
      "role",
      fmt::format(
          "{} of {}:{}; name its master", info.value("role"), info.value("master_host"), info.value("master_port"))};
}

Finding judge_eviction(const Info& info) {
  const std::string policy{info.value("maxmemory_policy")};
  if (policy == "noeviction")
    return {Grade::ok, "eviction", policy};
  if (info.number("maxmemory") > 0)
    return {Grade::fail, "eviction", policy + " can evict a lock; run `CONFIG SET maxmemory-policy noeviction`"};
  return {Grade::warn,
          "eviction",
          policy + " would evict locks if a maxmemory were set; run `CONFIG SET maxmemory-policy noeviction`"};
}

/// One server's examination.
class Examiner {
 public:
  Examiner(Loop& loop, redis::Server& server, const ExamineOptions& how) : loop_(loop), server_(server), how_(how) {}

  std::vector<Finding> examine() {
    ask_time();
    if (const auto info = ask_info()) {
      version_ = Version::read(info->value("redis_version"));
      for (auto judge : {judge_version, judge_role, judge_eviction}) add(judge(*info));
      add(judge_persistence(*info));
      add(judge_replicas(*info));
    } else {
      add({Grade::warn, "info", "INFO is refused: version, role, eviction, persistence and replicas are not known"});
    }
    add(judge_clock());
    return std::move(findings_);
  }

  Version version() const { return version_; }

 private:
  void add(Finding finding) { findings_.push_back(std::move(finding)); }

  redis::Reply ask(const redis::Command& command) {
    return lock::persist(loop_, server_, how_.timeout, [&](Deadline deadline) {
      auto replies = redis::call(loop_, server_, {command}, deadline);
      redis::check_reply(server_.address(), replies[0]);
      return std::move(replies[0]);
    });
  }

  std::optional<redis::Reply> ask_if_permitted(const redis::Command& command) {
    try {
      return ask(command);
    } catch (const Error& error) {
      if (error.may_pass())
        throw;
      return std::nullopt;  // the command is refused, or was renamed
    }
  }

  std::optional<Info> ask_info() {
    auto reply = ask_if_permitted({"INFO"});
    return reply ? std::optional{Info{reply->text}} : std::nullopt;
  }

  /// Measures how fast the server answers, and its clock by the fastest answer.
  void ask_time() {
    for (int i = 0; i < attempts; ++i) {
      const auto sent = BootClock::now();
      const redis::Reply reply = ask({"TIME"});
      const auto took = BootClock::now() - sent;
      if (i > 0 && took >= fastest_)
        continue;
      fastest_ = took;
      skew_ = read_time(reply) - (std::chrono::system_clock::now() - duration_cast<microseconds>(took / 2));
    }
    const double ms = std::chrono::duration<double, std::milli>(fastest_).count();
    add({Grade::ok, "reachable", fmt::format("{} in {:.2f} ms", server_.address().url, ms)});
  }

  std::chrono::system_clock::time_point read_time(const redis::Reply& reply) const {
    constexpr long long latest = 9'000'000'000;  // seconds that still fit into 64 bits of nanoseconds
    if (reply.elements.size() != 2)
      return {};
    const auto seconds = parse_number<long long>(reply.elements[0].text, 0, latest).value_or(0);
    const auto rest = parse_number<long long>(reply.elements[1].text, 0, 999'999).value_or(0);
    return std::chrono::system_clock::time_point{std::chrono::seconds{seconds} + microseconds{rest}};
  }

  Finding judge_clock() {
    const auto size = duration_cast<Milliseconds>(std::chrono::abs(skew_));
    const std::string text =
        fmt::format("{} {} this machine's", format_duration(size), skew_.count() < 0 ? "behind" : "ahead of");
    if (const auto step = find_clock_step(loop_, server_, how_.prefix, how_.timeout))
      return {Grade::warn,
              "clock",
              fmt::format(
                  "{}; it was set back by {} or more since its locks were last used", text, format_duration(*step))};
    return {size > tolerable_skew ? Grade::warn : Grade::ok, "clock", text};
  }

  /// A parameter of the server's configuration. Empty where the server does not know it or refuses CONFIG.
  std::optional<std::string> configured(const std::string& parameter) {
    const auto reply = ask_if_permitted({"CONFIG", "GET", parameter});
    return reply && reply->elements.size() == 2 ? std::optional{reply->elements[1].text} : std::nullopt;
  }

  Finding judge_replicas(const Info& info) {
    const auto count = info.number("connected_slaves");
    if (count == 0)
      return {Grade::ok, "replicas", "none"};
    for (long long i = 0; i < count; ++i) {
      const std::string_view replica = info.value(fmt::format("slave{}", i));
      if (replica.find("state=online") == std::string_view::npos)
        return {Grade::warn, "replicas", fmt::format("{}, one of which is not in sync: {}", count, replica)};
    }
    return {Grade::ok,
            "replicas",
            fmt::format("{}; a lock may reach them late (see --replicas); {}", count, describe_isolation())};
  }

  /// What a master does when it is cut off from its replicas, one of which may have been promoted in its place.
  std::string describe_isolation() {
    const std::string wanted = configured("min-replicas-to-write").value_or("");
    const std::string lag = configured("min-replicas-max-lag").value_or("");
    if (wanted.empty() || lag.empty())
      return "min-replicas-to-write is not known";
    if (wanted == "0" || lag == "0")
      return fmt::format(
          "with min-replicas-to-write {} and min-replicas-max-lag {} a master that is cut off from them goes on "
          "granting",
          wanted,
          lag);
    return fmt::format(
        "with min-replicas-to-write {} a master that is cut off from them goes on granting for min-replicas-max-lag "
        "{}s",
        wanted,
        lag);
  }

  Finding judge_persistence(const Info& info) {
    if (info.number("aof_enabled") == 1) {
      const std::string sync = configured("appendfsync").value_or("not known");
      if (sync != "no")
        return {Grade::ok, "persistence", "append-only file, appendfsync " + sync};
      return {Grade::warn,
              "persistence",
              "append-only file, appendfsync no: if its machine crashes, every lock may be freed; run `CONFIG SET "
              "appendfsync everysec`"};
    }
    if (how_.quorum)
      return {Grade::ok, "persistence", "off; after a restart it does not vote until --max-lease has passed"};
    const std::string enable = "; run `CONFIG SET appendonly yes`";
    const auto save = configured("save");
    if (save && !save->empty())
      return {Grade::warn, "persistence", "snapshots only: a crash frees the locks taken since the last one" + enable};
    return {Grade::warn, "persistence", (save ? "off: a restart frees every lock" : "no append-only file") + enable};
  }

  Loop& loop_;
  redis::Server& server_;
  const ExamineOptions& how_;
  std::vector<Finding> findings_;
  Version version_ = newest;
  BootClock::duration fastest_{};
  std::chrono::system_clock::duration skew_{};
};

/// Names our own user if we have one, else a new user.
std::string make_acl_line(const redis::Address& address, const std::string& prefix, Version version) {
  const std::string& user = address.credentials.user;
  const bool ours = !user.empty() && user != "default";
  const lock::Use use{.channels = version >= first_with_channel_rules,
                      .database = address.database != 0,
                      .sentinel = address.kind == redis::Address::Kind::sentinel,
                      .cluster = address.kind == redis::Address::Kind::cluster};
  return fmt::format("ACL SETUSER {} {}", ours ? user : "rlock on >PASSWORD", lock::needed_permissions(prefix, use));
}

}  // namespace

Fitness examine(Loop& loop, redis::Server& server, const ExamineOptions& how) {
  Summary summary;
  Version oldest_met = newest;
  const auto examine_node = [&](redis::Server& node) {
    Examiner examiner{loop, node, how};
    summary.add(redis::to_string(node.address().endpoints[0]), examiner.examine());
    oldest_met = std::min(oldest_met, examiner.version());
  };
  if (server.address().kind == redis::Address::Kind::cluster) {
    for (redis::Server& master : find_masters(loop, server, how.timeout)) examine_node(master);
  } else {
    examine_node(server);
  }
  Fitness fitness{.findings = summary.findings(), .acl_line = {}};
  const auto refusals = rehearse(loop, server, how.prefix, how.timeout);
  for (const std::string& refusal : refusals) fitness.findings.push_back({Grade::fail, "permissions", refusal});
  if (refusals.empty())
    fitness.findings.push_back({Grade::ok, "permissions", "every script works on a scratch key"});
  if (oldest_met >= first_with_users)
    fitness.acl_line = make_acl_line(server.address(), how.prefix, oldest_met);
  return fitness;
}

}  // namespace rlock::observe
