// rlock-sim: rlock's own code in simulated time. README.md explains it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "client.h"
#include "compare.h"
#include "judge.h"
#include "lock/name.h"
#include "lock/scripts.h"
#include "network.h"
#include "plan.h"
#include "world.h"

namespace sim {
namespace {

struct Outcome {
  std::string accusation;  // empty: nothing wrong
  std::string story;
  Nanos lasted = 0;
  long grants = 0;
  long commands = 0;
  std::uint64_t fingerprint = 0;
};

/// One world from its beginning to its end.
class Run {
 public:
  Run(const Plan& plan, bool tells)
      : plan_(plan), random_(plan.seed), network_(world_, random_.fork(1), plan.weather), judge_(world_, plan) {
    if (tells)
      world_.keep_story();
    the_network() = &network_;
    for (std::size_t i = 0; i < plan.hosts.size(); ++i) {
      Host& host = network_.add_host(fmt::format("redis{}", i + 1), plan.hosts[i], plan.is_quorum());
      host.redis.is_hasty = plan.is_hasty;
      host.redis.is_watched = plan.is_watched;
      if (plan.has_replica)
        host.replicate(plan.is_fair() ? 2 * milli : 3 * second);
      if (!plan.may_listen)
        host.redis.denied.insert("SUBSCRIBE");
      if (!plan.may_count)
        host.redis.denied.insert("PUBSUB");
    }
    for (std::size_t i = 0; i < plan.clients.size(); ++i) {
      machines_.push_back(std::make_unique<Machine>(world_,
                                                    fmt::format("client{}", i),
                                                    random_.fork(100 + i),
                                                    Clock{plan.clients[i].rate, random_.between(0, 1000) * second}));
    }
  }

  Outcome go() {
    for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
      if (plan_.has(machines_.size() + i))
        world_.at(plan_.faults[i].at, [this, i] { strike(plan_.faults[i]); });
    }
    world_.at(plan_.calm_at(), [this] { network_.calm_down(); });
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      if (plan_.has(i))
        machines_[i]->start([this, i] { be_client(*machines_[i], plan_, i, judge_, tokens_); });
    }
    const Nanos end = latest_end();
    while (world_.now() < end && world_.accusation().empty() && !all_over()) run(second);
    if (world_.accusation().empty())
      look_back();
    return {world_.accusation(), world_.story(), world_.now(), judge_.grants(), commands(), world_.fingerprint()};
  }

 private:
  void run(Nanos time) {
    world_.at(world_.now() + time, [] {});
    world_.run(world_.now() + time);
  }

  bool all_over() const {
    return std::all_of(machines_.begin(), machines_.end(), [](const auto& m) { return m->is_over(); });
  }

  /// By when everybody must have had the lock: nobody sleeps longer than a minute, holds longer than he works, or is
  /// believed for longer than a lease after he has died. A quorum's server does not vote in its first minute.
  Nanos latest_end() const {
    Nanos end = plan_.calm_at() + 300 * second;
    for (const ClientPlan& c : plan_.clients)
      end += c.start + c.rounds * (c.work + c.pause + 2 * c.ttl + c.min_hold + 45 * second);
    return end;
  }

  long commands() {
    long sum = 0;
    for (const auto& host : network_.hosts()) sum += host->commands();
    return sum;
  }

  void strike(const FaultPlan& fault) {
    using Kind = FaultPlan::Kind;
    Host& host = *network_.hosts()[fault.host];
    Machine* client = fault.client < machines_.size() ? machines_[fault.client].get() : nullptr;
    const Nanos over = world_.now() + std::abs(fault.duration);
    const bool of_client = fault.kind == Kind::freeze_client || fault.kind == Kind::kill_client;
    world_.tell("FAULT",
                fmt::format("{} {}", name(fault.kind), of_client && client != nullptr ? client->name() : host.name()));
    switch (fault.kind) {
      case Kind::cut:
        network_.cut(client, host);
        break;
      case Kind::mute:
        network_.mute(client, host);
        break;
      case Kind::partition:
        network_.part(client, host, over);
        break;
      case Kind::freeze_host:
        host.freeze(true);
        world_.at(over, [&host] { host.freeze(false); });
        break;
      case Kind::slow_host:
        host.slowness = std::abs(fault.duration) / 4;
        world_.at(over, [&host] { host.slowness = 0; });
        break;
      case Kind::restart:
        if (!host.is_up())
          break;
        host.stop();
        if (!fault.flag)
          judge_.loses_data(fault.host);
        world_.at(over, [&host, fault] { host.start(fault.flag); });
        break;
      case Kind::flush_scripts:
        host.redis.forget_scripts();
        break;
      case Kind::no_memory:
        host.redis.is_full = true;
        world_.at(over, [&host] { host.redis.is_full = false; });
        break;
      case Kind::freeze_client:
        if (client == nullptr || client->is_over())
          break;
        client->freeze();
        world_.at(over, [client] { client->thaw(); });
        break;
      case Kind::kill_client:
        if (client == nullptr || client->is_over())
          break;
        judge_.dies(client->name());
        tokens_.erase(fault.client);
        network_.lose(*client, fault.flag);
        client->kill();
        break;
      case Kind::step_clock:
        host.step_clock(fault.duration);
        judge_.forgets();
        break;
      case Kind::fail_over:
        host.fail_over();
        judge_.fails_over();
        break;
      case Kind::foreign_key:
        use_key(host, fault.duration);
        break;
      case Kind::lost_seats:
        spoil(host.redis, fault.flag);
        break;
    }
  }

  /// What every script must cope with, since others may do that to keys with an expiry.
  static void spoil(Redis& redis, bool evicts) {
    const Words keys = rlock::lock::LockName{"rlock:", "k"}.keys();
    const auto held = redis.data.find(keys[0]);
    if (evicts)
      redis.data.erase(keys[5]);
    else if (held != redis.data.end() && held->second.expires > redis.now() && !Books::read(redis, keys).is_foreign)
      held->second.expires = -1;
  }

  /// As another program does that takes the key for its own: for a text, a list, or a hash with a field like ours; or
  /// as a later version of rlock does.
  void use_key(Host& host, Nanos duration) {
    const rlock::lock::LockName name{"rlock:", "k"};
    const std::string key = name.keys()[0];
    const auto found = host.redis.data.find(key);
    const long long now = host.redis.now();
    if (!host.is_up() || (found != host.redis.data.end() && (found->second.expires < 0 || found->second.expires > now)))
      return;
    Redis::Entry theirs{"theirs", now + duration / milli};
    if (duration % 4 == 1)
      theirs.value = Redis::List{"theirs"};
    if (duration % 4 == 2)
      theirs.value = Redis::Hash{{"rlock", "theirs"}, {"their", "field"}};
    if (duration % 4 == 3)
      theirs.value = Redis::Hash{{"rlock", "1"}, {std::string(32, 'a'), std::string{alien_record} + "1 2"}};
    host.redis.data.insert_or_assign(key, std::move(theirs));
    if (!plan_.is_quorum())
      judge_.is_blocked(duration - 2 * milli, world_.now());  // beginning and length are cut to milliseconds
  }

  /// When all have gone, and what they left has run out.
  void look_back() {
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      if (!machines_[i]->is_over())
        world_.accuse(machines_[i]->name() + " still waits, long after everything has become well");
    }
    run(second);
    const Value at_once = ask(rlock::lock::scripts::status, {});
    if (plan_.is_fair() && at_once.elements.size() > 2 && at_once.elements[2].text != "0")
      world_.accuse("all have gone, but " + at_once.elements[2].text + " are in the queue");
    run(200 * second);  // the queue of those who were killed lives for two minutes
    ask(rlock::lock::scripts::log, {"1"});
    run(10 * second);  // a death that nobody has noticed before is dated now, and so is the back-off after it
    judge_.ends(remains());
  }

  Judge::Remains remains() {
    Judge::Remains remains;
    const Value log = ask(rlock::lock::scripts::log, {"100"});
    for (std::size_t i = 2; i < log.elements.size(); ++i) {
      if (log.elements[i].text.starts_with("hold "))
        continue;
      std::istringstream words{log.elements[i].text};
      long long fence = 0;
      std::string acquired, ended, waited, mode, how, holder;
      words >> fence >> acquired >> ended >> waited >> mode >> how >> holder;
      remains.history[fence].push_back(how);
      remains.holders[fence] = holder;
    }
    const Value status = ask(rlock::lock::scripts::status, {});
    remains.state = status.elements.at(0).text;
    remains.waiting = std::atoll(status.elements.at(2).text.c_str());
    for (std::size_t i = 3; i < status.elements.size(); ++i) {
      std::istringstream words{status.elements[i].text};
      std::string name;
      words >> name;
      for (std::string reason; name == "skipped" && words >> reason;) {
        if (reason.starts_with("last="))
          remains.last_skipped = reason;
        else
          remains.skipped += std::atoll(reason.c_str() + reason.find('=') + 1);
      }
      if (name != "skipped")
        words >> remains.counters[name];
    }
    Redis& redis = network_.hosts()[0]->redis;
    for (const auto& [key, entry] : redis.data) {
      if (entry.expires > redis.now())
        remains.keys[key] = (entry.expires - redis.now()) * milli;
    }
    return remains;
  }

  Value ask(const rlock::lock::Script& script, const Words& arguments) {
    const rlock::lock::LockName name{"rlock:", "k"};
    Words words{"EVAL", std::string{script.source}, std::to_string(name.keys().size())};
    for (const std::string& key : name.keys()) words.push_back(key);
    words.insert(words.end(), arguments.begin(), arguments.end());
    Session session;
    network_.hosts()[0]->redis.is_full = false;
    const std::vector<Value> replies = network_.hosts()[0]->execute(session, words);
    world_.tell("status", to_string(replies.at(0)));
    return replies.at(0);
  }

  const Plan& plan_;
  Random random_;
  World world_;
  Network network_;
  Judge judge_;
  Tokens tokens_;
  std::vector<std::unique_ptr<Machine>> machines_;
};

Outcome play(const Plan& plan, bool tells = false) { return Run{plan, tells}.go(); }

/// What an accusation is about: its text without numbers.
std::string kind_of(const std::string& accusation) {
  std::string kind;
  for (const char c : accusation) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      kind += c;
  }
  return kind;
}

/// Leaves out clients, faults and rounds, one at a time, for as long as the same happens.
Plan shrink(Plan plan, const std::string& accusation) {
  const auto still_fails = [&](const Plan& smaller) {
    return kind_of(play(smaller).accusation) == kind_of(accusation);
  };
  for (bool smaller = true; std::exchange(smaller, false);) {
    for (std::size_t item = 0; item < plan.items(); ++item) {
      Plan candidate = plan;
      if (candidate.omitted.insert(item).second && still_fails(candidate)) {
        plan = std::move(candidate);
        smaller = true;
      }
    }
    for (std::size_t i = 0; i < plan.clients.size(); ++i) {
      Plan candidate = plan;
      if (plan.has(i) && candidate.clients[i].rounds > 1 && (candidate.clients[i].rounds = 1, still_fails(candidate))) {
        plan = std::move(candidate);
        smaller = true;
      }
    }
  }
  return plan;
}

struct Options {
  std::optional<std::uint64_t> seed;
  std::set<std::size_t> omitted;
  bool story = false;
  bool whole = false;
  bool narrow = false;
  double seconds = 0;
  long worlds = 0;
  std::string seeds_file;
  std::string lines_file;
  std::string compare_with;
  long commands = 10'000;
};

class Campaign {
 public:
  explicit Campaign(const Options& options) : options_(options) {}

  bool run() {
    const auto begun = std::chrono::steady_clock::now();
    const std::uint64_t first = options_.seed ? *options_.seed : std::random_device{}();
    fmt::print("the first seed is {}\n", first);
    if (!options_.lines_file.empty())
      count_lines();
    std::ifstream seeds{options_.seeds_file};
    std::string kind;
    for (std::uint64_t seed = 0; failure_.empty() && seeds >> kind >> seed;) try_seed(seed, kind == "wide");
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    };
    for (std::uint64_t seed = first; failure_.empty(); ++seed) {
      if (options_.worlds > 0 ? worlds_ >= options_.worlds : elapsed() >= options_.seconds)
        break;
      try_seed(seed, !options_.narrow);
    }
    fmt::print(
        "{} worlds, {:.1f} simulated hours, {} grants, {} commands in {:.1f}s: {:.0f} grants a second of a processor; "
        "{} "
        "failed\n",
        worlds_,
        static_cast<double>(lasted_) / 3.6e12,
        grants_,
        commands_,
        elapsed(),
        static_cast<double>(grants_) * CLOCKS_PER_SEC / static_cast<double>(std::clock()),
        failure_.empty() ? "none" : "the last");
    for (const auto& [fault, count] : faults_) fmt::print("  {} x {}\n", count, fault);
    fmt::print("{}", failure_);
    if (!options_.lines_file.empty())
      write_lines();
    return failure_.empty();
  }

 private:
  void try_seed(std::uint64_t seed, bool may_be_wide) {
    const Plan plan = make_plan(seed, may_be_wide);
    const Outcome outcome = play(plan);
    ++worlds_;
    lasted_ += outcome.lasted;
    grants_ += outcome.grants;
    commands_ += outcome.commands;
    for (const FaultPlan& fault : plan.faults) ++faults_[name(fault.kind)];
    if (outcome.accusation.empty())
      return;
    const Plan small = options_.whole ? plan : shrink(plan, outcome.accusation);
    std::string omitted;
    for (const std::size_t item : small.omitted) omitted += (omitted.empty() ? "" : ",") + std::to_string(item);
    const Outcome retold = play(small, true);
    failure_ = fmt::format("\n...\n{}\nFAILED: {}\n{}again: rlock-sim --story{} --seed {}{}\n",
                           last_lines(retold.story),
                           retold.accusation,
                           describe(small),
                           may_be_wide ? "" : " --narrow",
                           seed,
                           omitted.empty() ? "" : " --omit " + omitted);
  }

  void write_lines() const {
    std::ofstream file{options_.lines_file};
    for (const auto& [digest, lines] : lines_run()) {
      for (const int line : lines) file << digest << ' ' << line << '\n';
    }
  }

  /// As many as a log shows.
  static std::string last_lines(const std::string& story) {
    constexpr std::size_t most = 25, longest = 200;
    std::istringstream lines{story};
    std::deque<std::string> last;
    for (std::string line; std::getline(lines, line);) {
      last.push_back(line.substr(0, longest));
      if (last.size() > most)
        last.pop_front();
    }
    return fmt::format("{}\n", fmt::join(last, "\n"));
  }

  const Options& options_;
  long worlds_ = 0, grants_ = 0, commands_ = 0;
  Nanos lasted_ = 0;
  std::map<std::string, long> faults_;
  std::string failure_;
};

bool tell_story(const Options& options) {
  Plan plan = make_plan(options.seed.value_or(1), !options.narrow);
  plan.omitted = options.omitted;
  const Outcome outcome = play(plan, true);
  fmt::print("{}\n{}\n{}\n",
             describe(plan),
             outcome.story,
             outcome.accusation.empty() ? "nothing wrong" : "FAILED: " + outcome.accusation);
  return outcome.accusation.empty();
}

constexpr const char* usage =
    "rlock-sim [--seed N] (--seconds N | --worlds N) [--seeds FILE]   new worlds, after those of the file\n"
    "          [--lines FILE]                                          notes which lines of the scripts have run\n"
    "          [--whole]                                               makes no failed world smaller\n"
    "          [--narrow]                                              as before there were wide worlds\n"
    "          [--scripts DIR]                                         servers run the scripts of that src/lock\n"
    "rlock-sim --story [--narrow] --seed N [--omit I,J,...]           tells one world\n"
    "rlock-sim --compare SOCKET [--seed N] [--commands N]               the model beside a redis-server\n";

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--story") {
      options.story = true;
      continue;
    }
    if (word == "--narrow") {
      options.narrow = true;
      continue;
    }
    if (word == "--whole") {
      options.whole = true;
      continue;
    }
    if (!has_value) {
      fmt::print(stderr, "{}", usage);
      std::exit(64);
    }
    const std::string value = argv[++i];
    if (word == "--seed")
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (word == "--seconds")
      options.seconds = std::strtod(value.c_str(), nullptr);
    else if (word == "--worlds")
      options.worlds = std::strtol(value.c_str(), nullptr, 10);
    else if (word == "--seeds")
      options.seeds_file = value;
    else if (word == "--lines")
      options.lines_file = value;
    else if (word == "--compare")
      options.compare_with = value;
    else if (word == "--scripts")
      replace_scripts(value);
    else if (word == "--commands")
      options.commands = std::strtol(value.c_str(), nullptr, 10);
    else if (word == "--omit") {
      std::istringstream items{value};
      for (std::string item; std::getline(items, item, ',');)
        options.omitted.insert(std::strtoul(item.c_str(), nullptr, 10));
    } else {
      fmt::print(stderr, "{}", usage);
      std::exit(64);
    }
  }
  return options;
}

}  // namespace
}  // namespace sim

int main(int argc, char** argv) {
  const sim::Options options = sim::parse(argc, argv);
  if (!options.compare_with.empty())
    return sim::compare(options.compare_with, options.seed.value_or(1), options.commands) == 0 ? 0 : 1;
  if (options.story)
    return sim::tell_story(options) ? 0 : 1;
  return sim::Campaign{options}.run() ? 0 : 1;
}
