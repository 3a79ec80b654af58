#include "observe/fitness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/word.h"
#include "lock/lock.h"
#include "lock/permissions.h"
#include "lock/request.h"
#include "lock/retry.h"
#include "lock/script_call.h"
#include "observe/facts.h"
#include "observe/history.h"
#include "observe/survey.h"
#include "redis/reply.h"

namespace rlock::observe {
namespace {

constexpr std::string_view default_address =
    ", the default address, which is this machine's own: set RLOCK_REDIS, or redis = URL in /etc/rlock.conf";
constexpr std::string_view instead_of_replica = "give the address of the master to --redis";

/// Goes through the whole life of a lock on a scratch key, with a holder and a waiter: runs every script, waits and
/// lists. The key is removed at the end.
class Rehearsal {
 public:
  Rehearsal(redis::Server& server, const std::string& prefix, Milliseconds timeout)
      : server_(server),
        timeout_(timeout),
        name_(prefix, "rlock-check-" + lock::Level::random().text()),
        lock_({&server, 1}, name_, Milliseconds{0}) {}

  /// Returns what was refused or failed, in the server's words, each once; an empty list means that everything works.
  /// Stops at the first failure that is not a lack of permission.
  std::vector<Finding> play() {
    attempt("acquire", [&] { (void)lock_.acquire(holder_, {}, deadline()); });
    attempt("queue", [&] { wait(); });
    attempt("status", [&] { (void)inspect(server_, name_, deadline()); });
    attempt("subscribe", [&] { check_that_it_listens(); });
    attempt("list", [&] { call({"SCAN", "0", "MATCH", name_.key(), "COUNT", "1"}); });
    attempt("renew", [&] { (void)lock_.renew(holder_.token, holder_.ttl, deadline()); });
    attempt("settle", [&] { call_script(lock::settle_request(name_, holder_, {1}, lock::Settling::again)); });
    attempt("release", [&] { (void)lock_.release_all(holder_.token, holder_.level, deadline()); });
    attempt("recall", [&] { (void)lock_.fate_of(holder_.token, holder_.level, lock::Fence{1}, deadline()); });
    attempt("log", [&] { call_script(lock::log_request(name_, 1)); });
    attempt("trim", [&] { call({"LTRIM", name_.history(), "0", "-1"}); });  // release does it once the log is full
    attempt("correct", [&] { call({"LSET", name_.history(), "0", ""}); });  // release does it after a death
    attempt("hold", [&] { hold(); });
    attempt("cancel", [&] { lock_.cancel(waiter_, deadline()); });
    attempt("force", [&] { (void)lock_.look(deadline()); });
    const auto refused = refusals_;
    attempt("remove", [&] { remove(); });
    if (!refused.empty())
      refusals_ = refused;  // whoever may not remove was not allowed to release either
    try_commands_of_rare_branches();
    return std::move(refusals_);
  }

 private:
  Deadline deadline() const { return BootClock::now() + timeout_; }

  void attempt(std::string_view what, const std::function<void()>& step) {
    if (stopped_)
      return;
    try {
      step();
    } catch (const Error& error) {
      stopped_ = error.code() != ExitCode::no_permission;  // any other failure would hit the later steps too
      std::string_view words{error.what()};
      if (const std::string subject = server_.address().url + ": "; words.starts_with(subject))
        words.remove_prefix(subject.size());  // it stands in the line above
      const std::string_view refusal = words.substr(0, words.find("; rlock needs"));
      const auto is_same = [&](const Finding& known) { return known.text.ends_with(refusal); };
      if (std::none_of(refusals_.begin(), refusals_.end(), is_same))
        refusals_.push_back({Finding::Grade::fail,
                             stopped_ ? "writes" : topic_of_permissions,
                             fmt::format("{}: {}", what, refusal),
                             stopped_ ? advise(refusal) : Remedy{}});
    }
  }

  /// What to do about a server that takes no writes, which has nothing to do with our rights.
  static Remedy advise(std::string_view refusal) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> remedies{
        {{"OOM", "raise its maxmemory, or delete keys; locks that are held are still renewed"},
         {"MISCONF", "mend what keeps the server from saving to its disk; its log says what that is"},
         {"NOREPLICAS", "bring its replicas back, or lower min-replicas-to-write"},
         {"this is a replica", instead_of_replica}}};
    const auto* const found = std::find_if(
        remedies.begin(), remedies.end(), [&](const auto& remedy) { return refusal.starts_with(remedy.first); });
    return {.words = found == remedies.end() ? "" : std::string{found->second}};
  }

  /// Asks only whether we may: where an earlier step was refused, its key may be missing, or still be there.
  void call(const redis::Command& command) {
    const auto replies = server_.call({command}, deadline());
    if (replies[0].text != "ERR no such key" && !replies[0].is_error("WRONGTYPE"))
      redis::check_reply(server_.address(), replies[0]);
  }

  /// The scripts go on if one of these is refused, or need it only where there is a foreign key, a replica or a quorum.
  void try_commands_of_rare_branches() {
    const std::string channel = name_.channel(waiter_.level);
    attempt("hand over", [&] { call({"PUBLISH", channel, ""}); });
    attempt("find listeners", [&] { call({"PUBSUB", "NUMSUB", channel}); });
    attempt("read foreign string", [&] { call({"GETRANGE", name_.key(), "0", "0"}); });
    attempt("read foreign hash", [&] { call({"HSCAN", name_.key(), "0"}); });
    attempt("replicas", [&] { call({"WAIT", "0", "1"}); });
    attempt("uptime", [&] { call({"INFO", "server"}); });
  }

  void wait() {
    lock_.listen(waiter_.level);
    (void)lock_.acquire(waiter_, {.how = lock::Question::How::queue}, deadline());
  }

  void check_that_it_listens() const {
    if (const auto why = server_.refusal_to_listen())
      throw *why;
  }

  void call_script(const lock::Request& request) { (void)lock::call_script(server_, request, deadline()); }

  void hold() {
    (void)lock_.hold(Milliseconds{10'000}, holder_.owner, holder_.level, deadline());
    (void)lock_.end_hold(holder_.owner, waiter_.level, deadline());
  }

  void remove() {
    redis::Command del{"DEL"};
    for (const lock::Claim& claim : {holder_, waiter_}) {
      for (std::string& key : name_.keys(claim.level.text(), claim.token.text())) del.push_back(std::move(key));
    }
    call(del);
  }

  static lock::Claim make_claim() {
    return {.token = lock::Token::random(),
            .level = lock::Level::random(),
            .capacity = lock::exclusive,
            .ttl = Milliseconds{10'000},
            .owner = lock::describe_self({}, "rlock check", {})};
  }

  redis::Server& server_;
  Milliseconds timeout_;
  lock::LockName name_;
  lock::Lock lock_;
  lock::Claim holder_ = make_claim();
  lock::Claim waiter_ = make_claim();
  std::vector<Finding> refusals_;
  bool stopped_ = false;
};

using Grade = Finding::Grade;
using std::chrono::duration_cast;
using std::chrono::microseconds;

constexpr int samples = 5;  // of TIME; the fastest answer counts
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
  long long number(std::string_view name) const { return parse_number(value(name), 0LL, largest_whole).value_or(0); }

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
  return {Grade::fail,
          "role",
          fmt::format("replica of {}:{}; name its master", info.value("master_host"), info.value("master_port")),
          {.words = std::string{instead_of_replica}}};
}

constexpr Milliseconds smallest_step{1000};  // smaller steps are normal for a clock that NTP adjusts

WallTime latest_of(const LockFacts& facts) {
  WallTime latest{};
  for (const HolderFacts& holder : facts.holders) latest = std::max(latest, holder.acquired_at);
  if (facts.last)
    latest = std::max(latest, facts.last->ended_at);
  return facts.success ? std::max(latest, facts.success->ended_at) : latest;
}

/// How far the server's clock is behind the latest time that a sample of its locks has recorded, which means that it
/// was set back. Empty where it is less than a second behind, or where we may not read the locks.
std::optional<Milliseconds> find_clock_step(redis::Server& server, const std::string& prefix, Milliseconds timeout) {
  try {
    Milliseconds step{0};
    for (const LockFacts& facts : sample(server, {.prefix = prefix, .remembered = true}, timeout))
      step = std::max(step, latest_of(facts) - facts.now);
    return step >= smallest_step ? std::optional{step} : std::nullopt;
  } catch (const Error& error) {
    if (error.code() != ExitCode::no_permission)
      throw;
    return std::nullopt;
  }
}

/// Nothing to say of a server that has evicted none, or is too old to evict any.
std::optional<Finding> judge_scripts(const Info& info) {
  const auto evicted = info.number("evicted_scripts");
  if (evicted == 0)
    return std::nullopt;
  return Finding{
      Grade::warn,
      "scripts",
      fmt::format("{} evicted, since some program keeps sending new ones; rlock's stay only if its user may use "
                  "SCRIPT LOAD",
                  evicted)};
}

/// One server's examination.
class Examiner {
 public:
  Examiner(redis::Server& server, const ExamineOptions& how) : server_(server), how_(how) {}

  std::vector<Finding> examine() {
    ask_time();
    acl_file_ = configured("aclfile").value_or("");
    if (const auto info = ask_info()) {
      version_ = Version::read(info->value("redis_version"));
      config_file_ = info->value("config_file");
      for (auto judge : {judge_version, judge_role}) add(judge(*info));
      add(judge_eviction(*info));
      add(judge_persistence(*info));
      add(judge_replicas(*info));
      run_id_ = info->value("run_id");
      if (auto young = judge_uptime(*info))
        add(*std::move(young));
      if (auto scripts = judge_scripts(*info))
        add(*std::move(scripts));
    } else {
      add({Grade::warn, "info", "INFO is refused: version, role, eviction, persistence and replicas are not known"});
    }
    add(judge_clock());
    return std::move(findings_);
  }

  Version version() const { return version_; }
  const std::string& run_id() const { return run_id_; }
  Milliseconds votes_in() const { return votes_in_; }

  /// The command that makes an ACL line survive a restart; empty where none can.
  std::string acl_save() const {
    if (!acl_file_.empty())
      return "ACL SAVE";
    return config_file_.empty() || config_is_refused_ ? "" : "CONFIG REWRITE";
  }

  /// What becomes of an ACL line where acl_save() knows no command.
  std::string_view acl_loss() const {
    if (config_is_refused_)
      return "a restart forgets it without ACL SAVE, or CONFIG REWRITE if the server has no aclfile";
    return "a restart forgets it, since the server has neither an aclfile nor a configuration file; for good, start "
           "redis-server with --aclfile FILE before, and write ACL SAVE after it";
  }

 private:
  /// What changes a parameter for good. CONFIG REWRITE needs the file that the server was started with.
  Remedy advise(std::string_view parameter, std::string_view value) const {
    std::string set = fmt::format("CONFIG SET {} {}", parameter, value);
    const std::string paste =
        fmt::format("{}paste into redis-cli:", config_is_refused_ ? "as one who may use CONFIG, " : "");
    if (!config_file_.empty())
      return {.words = paste, .lines = {std::move(set), "CONFIG REWRITE"}};
    return {.words = "for now, since a restart forgets it, " + paste,
            .lines = {std::move(set)},
            .afterwards = fmt::format(
                "for good, start redis-server with --{} {}: it has no configuration file", parameter, value)};
  }

  Finding judge_eviction(const Info& info) const {
    const std::string policy{info.value("maxmemory_policy")};
    if (policy == "noeviction")
      return {Grade::ok, "eviction", policy};
    const Remedy remedy = advise("maxmemory-policy", "noeviction");
    if (info.number("maxmemory") > 0)
      return {Grade::fail, "eviction", policy + " can evict a lock: when memory runs out it is given away", remedy};
    return {Grade::warn, "eviction", policy + " would evict locks if a maxmemory were set", remedy};
  }

  void add(Finding finding) { findings_.push_back(std::move(finding)); }

  redis::Reply ask(const redis::Command& command) {
    return lock::persist(server_, how_.timeout, [&](Deadline deadline) {
      auto replies = server_.call({command}, deadline);
      redis::check_reply(server_.address(), replies[0]);
      return std::move(replies[0]);
    });
  }

  /// Empty where the command is refused, in the sense of `is_refusal`; any other failure is thrown.
  std::optional<redis::Reply> ask_unless(bool (*is_refusal)(const Error&), const redis::Command& command) {
    try {
      return ask(command);
    } catch (const Error& error) {
      if (!is_refusal(error))
        throw;
      return std::nullopt;
    }
  }

  static bool will_not_pass(const Error& error) { return !error.may_pass(); }  // or the command was renamed
  /// A refusal is an answer too, but not that of our credentials.
  static bool lacks_permission(const Error& error) { return redis::lacks_permission(error.what()); }

  std::optional<Info> ask_info() {
    auto reply = ask_unless(will_not_pass, {"INFO"});
    return reply ? std::optional{Info{reply->text}} : std::nullopt;
  }

  /// Measures how fast the server answers, and its clock by the fastest answer.
  void ask_time() {
    for (int i = 0; i < samples; ++i) {
      const auto sent = BootClock::now();
      const auto reply = ask_unless(lacks_permission, {"TIME"});
      const auto took = BootClock::now() - sent;
      if (i > 0 && took >= fastest_)
        continue;
      fastest_ = took;
      if (reply)
        skew_ = read_time(*reply) - (std::chrono::system_clock::now() - duration_cast<microseconds>(took / 2));
    }
    const double ms = std::chrono::duration<double, std::milli>(fastest_).count();
    const std::string_view whose = server_.address().origin.empty() ? default_address : "";
    add({Grade::ok, "reachable", fmt::format("{} in {:.2f} ms{}", server_.address().url, ms, whose)});
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
    if (!skew_)
      return {Grade::warn, "clock", "TIME is refused: the clock is not known"};
    const auto size = duration_cast<Milliseconds>(std::chrono::abs(*skew_));
    const std::string text =
        size.count() == 0
            ? "the same as this machine's"
            : fmt::format("{} {} this machine's", format_duration(size), skew_->count() < 0 ? "behind" : "ahead of");
    if (const auto step = find_clock_step(server_, how_.prefix, how_.timeout))
      return {Grade::warn,
              "clock",
              fmt::format(
                  "{}; it was set back by {} or more since its locks were last used", text, format_duration(*step))};
    return {size > tolerable_skew ? Grade::warn : Grade::ok, "clock", text};
  }

  /// A parameter of the server's configuration. Empty where the server does not know it or refuses CONFIG.
  std::optional<std::string> configured(const std::string& parameter) {
    const auto reply = ask_unless(will_not_pass, {"CONFIG", "GET", parameter});
    config_is_refused_ = !reply;
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

  /// Nothing to say of a server that votes. What acquire.lua counts is a second less than what INFO tells.
  std::optional<Finding> judge_uptime(const Info& info) {
    const Milliseconds up{std::max(0LL, info.number("uptime_in_seconds") - 1) * 1000};
    votes_in_ = std::max(how_.max_lease - up, Milliseconds{0});
    if (votes_in_.count() == 0)
      return std::nullopt;
    return Finding{Grade::warn,
                   "uptime",
                   fmt::format("up for {}: it votes in {} (--max-lease {}), since it may have forgotten a lock",
                               format_duration(up),
                               format_duration(votes_in_),
                               format_limit(how_.max_lease))};
  }

  std::string not_known() const {
    return config_is_refused_ ? "not known, since this user may not use CONFIG" : "not known";
  }

  /// What a master does when it is cut off from its replicas, one of which may have been promoted in its place.
  std::string describe_isolation() {
    const std::string wanted = configured("min-replicas-to-write").value_or("");
    const std::string lag = configured("min-replicas-max-lag").value_or("");
    if (wanted.empty() || lag.empty())
      return "min-replicas-to-write is " + not_known();
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
      const std::string sync = configured("appendfsync").value_or(not_known());
      if (sync != "no")
        return {Grade::ok, "persistence", "append-only file, appendfsync " + sync};
      return {Grade::warn,
              "persistence",
              "append-only file, appendfsync no: if its machine crashes, every lock may be freed",
              advise("appendfsync", "everysec")};
    }
    if (how_.max_lease.count() > 0)
      return {Grade::ok, "persistence", "off; after a restart it does not vote until --max-lease has passed"};
    const Remedy remedy = advise("appendonly", "yes");
    const auto save = configured("save");
    if (save && !save->empty())
      return {Grade::warn, "persistence", "snapshots only: a crash frees the locks taken since the last one", remedy};
    return {Grade::warn,
            "persistence",
            save ? "off: a restart frees every lock"
                 : fmt::format("no append-only file: a crash may free locks; snapshots are {}", not_known()),
            remedy};
  }

  redis::Server& server_;
  const ExamineOptions& how_;
  std::vector<Finding> findings_;
  Version version_ = newest;
  std::string config_file_, acl_file_;  // of the server; empty where it has none, or does not tell
  bool config_is_refused_ = false;
  BootClock::duration fastest_{};
  std::optional<std::chrono::system_clock::duration> skew_;
  std::string run_id_;
  Milliseconds votes_in_{};
};

/// Combines the findings about all nodes of a cluster. What holds for all nodes is said once, anything else with the
/// names of the nodes that it holds for.
class Summary {
 public:
  void add(std::string_view node, const std::vector<Finding>& findings) {
    ++nodes_;
    for (const Finding& finding : findings) line_for(finding).nodes.emplace_back(node);
  }

  std::vector<Finding> findings() const {
    std::vector<Finding> all;
    for (const Line& line : lines_) {
      all.push_back(line.finding);
      if (line.nodes.size() < nodes_ && line.finding.topic != "reachable")  // its text names the node anyway
        all.back().text = fmt::format("{}: {}", fmt::join(line.nodes, ", "), line.finding.text);
    }
    return all;
  }

 private:
  struct Line {
    Finding finding;
    std::vector<std::string> nodes;
  };

  /// Keeps the lines of one topic together.
  Line& line_for(const Finding& finding) {
    auto place = lines_.end();
    for (auto line = lines_.begin(); line != lines_.end(); ++line) {
      if (line->finding == finding)
        return *line;
      if (line->finding.topic == finding.topic)
        place = line + 1;
    }
    return *lines_.insert(place, Line{.finding = finding, .nodes = {}});
  }

  std::vector<Line> lines_;
  std::size_t nodes_ = 0;
};

/// Empty for the default user, which is not ours alone.
std::string own_user(const redis::Address& address) {
  return address.credentials.user == "default" ? "" : address.credentials.user;
}

/// Names our own user if we have one, else a new user. From one that `suffices` it takes all other rights, since Redis
/// refuses to add a pattern to a user that has all keys.
std::string make_acl_line(const redis::Address& address, const ExamineOptions& how, Version version, bool suffices) {
  const std::string user = own_user(address);
  const lock::Use use{.channels = version >= first_with_channel_rules,
                      .database = address.database != 0,
                      .sentinel = address.kind == redis::Address::Kind::sentinel,
                      .cluster = address.kind == redis::Address::Kind::cluster};
  std::string who = user.empty() ? "rlock on >" + how.new_password : user;
  if (!user.empty() && suffices)
    who += use.channels ? " resetkeys resetchannels nocommands" : " resetkeys nocommands";
  return fmt::format("ACL SETUSER {} {}", who, lock::needed_permissions(how.prefix, use));
}

}  // namespace

Fitness examine(redis::Server& server, const ExamineOptions& how) {
  Summary summary;
  Version oldest_met = newest;
  Fitness fitness;
  const auto examine_node = [&](redis::Server& node) {
    Examiner examiner{node, how};
    summary.add(redis::to_string(node.address().endpoints[0]), examiner.examine());
    oldest_met = std::min(oldest_met, examiner.version());
    fitness.acl_save = examiner.acl_save();
    fitness.acl_loss = fitness.acl_save.empty() ? examiner.acl_loss() : "";
    fitness.run_id = examiner.run_id();
    fitness.votes_in = examiner.votes_in();
  };
  server.visit_nodes(BootClock::now() + how.timeout, listing_limits, examine_node);
  fitness.findings = summary.findings();
  fitness.own_user = own_user(server.address());
  const auto refusals = Rehearsal{server, how.prefix, how.timeout}.play();
  fitness.findings.insert(fitness.findings.end(), refusals.begin(), refusals.end());
  if (refusals.empty())
    fitness.findings.push_back(
        {Grade::ok, topic_of_permissions, "rlock may do all that it needs to, as tried on a key of its own"});
  const auto lacks_permission = [](const Finding& refusal) { return refusal.topic == topic_of_permissions; };
  const bool was_tried = refusals.empty() || std::any_of(refusals.begin(), refusals.end(), lacks_permission);
  if (was_tried && oldest_met >= first_with_users)
    fitness.acl_line = make_acl_line(server.address(), how, oldest_met, refusals.empty());
  return fitness;
}

}  // namespace rlock::observe
