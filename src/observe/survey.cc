#include "observe/survey.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "lock/owner.h"
#include "lock/permissions.h"
#include "lock/quorum.h"
#include "lock/request.h"
#include "lock/retry.h"
#include "lock/script_call.h"
#include "redis/reply.h"

namespace rlock::observe {
namespace {

/// What the servers that answered say about one lock.
using Views = std::vector<const LockFacts*>;

State decide(const Views& views, std::size_t majority) {
  std::map<State, std::size_t> votes;
  for (const LockFacts* facts : views) ++votes[facts->state];
  const auto free = votes.find(State::free);
  if (free != votes.end() && free->second >= majority)
    return State::free;
  State state = State::free;
  std::size_t most = 0;
  for (const auto& [candidate, voters] : votes) {
    if (candidate != State::free && voters > most) {
      state = candidate;
      most = voters;
    }
  }
  return state;
}

/// The view that `rank` puts highest.
template <typename Rank>
const LockFacts& highest(const Views& views, Rank rank) {
  return **std::max_element(views.begin(), views.end(), [&](auto a, auto b) { return rank(a) < rank(b); });
}

/// The most informative view: one with the decided state and the most holders.
const LockFacts& best_of(const Views& views, State state) {
  const auto rank = [state](const LockFacts* facts) {
    return std::tuple{facts->state == state, facts->holders.size()};
  };
  return highest(views, rank);
}

/// The newest run that any server knows. One that has not heard how it ended takes it for dead when its lease is over.
std::optional<Run> last_of(const Views& views) {
  const auto rank = [](const LockFacts* facts) {
    const auto& last = facts->last;
    return last ? std::tuple{last->fence.value, last->ending.kind != Ending::Kind::died} : std::tuple{-1LL, false};
  };
  return highest(views, rank).last;
}

std::optional<Run> last_success_of(const Views& views) {
  const auto when = [](const LockFacts* facts) { return facts->success ? facts->success->acquired_at : WallTime{}; };
  return highest(views, when).success;
}

/// A server may have missed some of what it counts, and must not make a total fall. One that has missed a success would
/// count too many failures in a row.
Counters most_counted(const Views& views) {
  Counters most;
  std::vector<long long> failing;
  for (const LockFacts* facts : views) {
    const Counters& counters = facts->counters;
    for (const auto total :
         {&Counters::acquired, &Counters::waited, &Counters::evicted, &Counters::lost, &Counters::failed})
      most.*total = std::max(most.*total, counters.*total);
    for (std::size_t i = 0; i < most.skipped.size(); ++i)
      most.skipped.at(i) = std::max(most.skipped.at(i), counters.skipped.at(i));
    if (counters.last_skip && (!most.last_skip || counters.last_skip->at > most.last_skip->at))
      most.last_skip = counters.last_skip;
    failing.push_back(counters.failing);
  }
  const auto middle = failing.begin() + static_cast<std::ptrdiff_t>(failing.size() / 2);
  std::nth_element(failing.begin(), middle, failing.end());
  most.failing = *middle;
  return most;
}

/// A hold that a majority of the servers knows of, or may know of.
std::optional<HoldFacts> agreed_hold(const Views& views, std::size_t silent, std::size_t majority) {
  std::optional<HoldFacts> last;
  std::size_t count = silent;
  for (const LockFacts* facts : views) {
    if (!facts->hold)
      continue;
    ++count;
    if (!last || facts->hold->since > last->since)
      last = facts->hold;
  }
  return count >= majority ? last : std::nullopt;
}

/// How long a majority still has the holder if nobody renews it, which has these leases on the servers that know it.
Milliseconds lease_of_majority(std::vector<Milliseconds> leases, std::size_t silent, std::size_t majority) {
  std::sort(leases.begin(), leases.end(), std::greater{});
  return leases.at(majority - std::min(silent, majority - 1) - 1);
}

LockFacts merge_one(const std::vector<ServerView>& servers, std::size_t index) {
  Views views;
  std::vector<ServerFacts> states;
  for (const ServerView& server : servers) {
    states.push_back({.url = server.url});
    if (!server.facts)
      continue;
    views.push_back(&(*server.facts)[index]);
    states.back().state = views.back()->state;
  }
  const std::size_t majority = lock::majority_of(servers.size());
  const std::size_t silent = servers.size() - views.size();
  const State state = decide(views, majority);
  LockFacts merged = best_of(views, state);
  merged.state = state;
  merged.last = last_of(views);
  merged.success = last_success_of(views);
  merged.counters = most_counted(views);
  merged.hold = agreed_hold(views, silent, majority);
  merged.servers = std::move(states);
  std::map<long long, std::vector<Milliseconds>> leases;  // of the holder with that fence, on those that know it
  for (const LockFacts* facts : views) {
    merged.waiting = std::max(merged.waiting, facts->waiting);  // a waiter queues at every server that it can reach
    for (const HolderFacts& holder : facts->holders) leases[holder.fence.value].push_back(holder.lease);
  }
  if (state != State::foreign)
    merged.foreign.reset();
  std::erase_if(merged.holders,
                [&](const HolderFacts& holder) { return leases.at(holder.fence.value).size() + silent < majority; });
  for (HolderFacts& holder : merged.holders)
    holder.lease = lease_of_majority(leases.at(holder.fence.value), silent, majority);
  if (state == State::free) {
    merged.capacity.reset();
    merged.holders.clear();
  }
  return merged;
}

constexpr Milliseconds grace{250};  // how long to wait for the other servers once a majority has answered

constexpr std::size_t batch = 50;  // script calls in one exchange, since their answers may be long

/// Whether the key has moved or is moving to another node of the cluster, or the node does not have the script yet.
bool must_be_asked_again(const redis::Reply& reply) {
  return reply.is_error("MOVED") || reply.is_error("ASK") || reply.is_error("TRYAGAIN") || reply.is_error("NOSCRIPT");
}

/// Whether the script failed on what is stored there, as Redis 5 and 6, or 7 and later say it. Any other failure is one
/// of the server.
bool is_about_the_value(const Error& failure) {
  const std::string_view words = failure.what();
  return failure.code() != ExitCode::no_permission &&
         (words.find("user_script:") != std::string_view::npos || words.find("WRONGTYPE") != std::string_view::npos);
}

/// One call of a script that may record deaths, and writes nothing else, for each of many locks. A lock may be asked
/// about twice, when an attempt failed half-way.
struct Inquiry {
  std::function<lock::Request(const lock::LockName&)> ask;
  /// Returns how much memory what it keeps takes in addition to the answer, lines of which may be shorter than what
  /// they become.
  std::function<std::size_t(const lock::LockName&, lock::Fields)> take;
  /// Called when the script itself failed on what is stored under that name: one such lock must not hide the others.
  std::function<void(const lock::LockName&, const Error&)> pass_over = [](const lock::LockName&, const Error&) {};
};

/// Whom to ask: a node, and the server of which it is a part, where a lock that is moving to another node is looked
/// for. Both are the same where one node has all keys, or where any node may have the lock.
struct Addressee {
  redis::Server& node;
  redis::Server& whole;
};

/// Carries out an inquiry. All that it is made of must outlive it.
class Inquirer {
 public:
  /// Each exchange may take up to `timeout`.
  Inquirer(const Inquiry& inquiry, Milliseconds timeout, Budget& budget)
      : inquiry_(inquiry), timeout_(timeout), budget_(budget) {}

  /// Throws Error if a server fails.
  void ask_all(Addressee addressee, std::span<const lock::LockName> names) {
    if (names.empty())
      return;
    if (addressee.node.is_spread()) {
      for (const lock::LockName& name : names) ask(addressee.node, name);
      return;
    }
    ask(addressee.whole, names.front());  // loads the script where the server does not have it yet
    for (std::size_t begin = 1; begin < names.size(); begin += batch)
      ask_at_once(addressee, names.subspan(begin, std::min(batch, names.size() - begin)));
  }

 private:
  void ask(redis::Server& server, const lock::LockName& name) {
    try {
      take(name, lock::call_script(server, inquiry_.ask(name), BootClock::now() + timeout_));
    } catch (const Error& error) {
      pass_over(name, error);
    }
  }

  void ask_at_once(Addressee addressee, std::span<const lock::LockName> names) {
    std::vector<redis::Command> commands;
    for (const lock::LockName& name : names) commands.push_back(inquiry_.ask(name).command);
    auto replies = addressee.node.call(commands, BootClock::now() + timeout_);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (must_be_asked_again(replies[i])) {
        ask(addressee.whole, names[i]);
      } else if (replies[i].is_error()) {
        pass_over(names[i], redis::refusal(replies[i]).about(addressee.node.address().url));
      } else {
        take(names[i], {addressee.node.address(), std::move(replies[i])});
      }
    }
  }

  void take(const lock::LockName& name, lock::Fields fields) {
    budget_.spend(fields.reply());
    budget_.spend(inquiry_.take(name, std::move(fields)));
  }

  /// Throws the failure unless it is the lock's.
  void pass_over(const lock::LockName& name, const Error& failure) const {
    if (!is_about_the_value(failure))
      throw Error{failure};
    inquiry_.pass_over(name, failure);
  }

  const Inquiry& inquiry_;
  Milliseconds timeout_;
  Budget& budget_;
};

/// Asks one server about every lock of the scope.
void visit(redis::Server& server, const Scope& scope, const Inquiry& inquiry, Milliseconds timeout) {
  Budget budget{server};
  Inquirer inquirer{inquiry, timeout, budget};
  inquirer.ask_all({.node = server, .whole = server}, scope.names);
  if (!scope.must_list())
    return;
  server.visit_nodes(BootClock::now() + timeout, listing_limits, [&](redis::Server& node) {
    inquirer.ask_all({.node = node, .whole = server}, list_locks(node, scope, timeout, budget));
  });
}

/// Calls visit() again while it fails and time is left.
void visit_patiently(redis::Server& server, const Scope& scope, const Inquiry& inquiry, Milliseconds timeout) {
  try {
    lock::persist(server, timeout, [&](Deadline) { visit(server, scope, inquiry, timeout); });
  } catch (const Error& error) {
    throw lock::advise_on_permissions(error, scope.prefix);
  }
}

std::size_t size_of(const LockFacts& lock) {
  return lock.holders.size() * sizeof(HolderFacts) + lock.waiters.size() * sizeof(WaiterFacts);
}

/// What was found about each lock, by name, since a key that moves meanwhile may be found twice.
template <typename Findings>
using ByName = std::map<std::string, Findings>;

/// The named locks come first, in the order in which they were named.
template <typename Findings>
std::vector<Findings> in_order(ByName<Findings> found, const Scope& scope) {
  std::vector<Findings> all;
  for (const lock::LockName& name : scope.names) {
    if (auto node = found.extract(name.text()))
      all.push_back(std::move(node.mapped()));
  }
  for (auto& [name, findings] : found) all.push_back(std::move(findings));
  return all;
}

ByName<LockFacts> look(redis::Server& server, const Scope& scope, Milliseconds timeout) {
  ByName<LockFacts> found;
  const auto take = [&](const lock::LockName& name, lock::Fields fields) {
    return size_of(found[name.text()] = read_facts(name, std::move(fields)));
  };
  const auto pass_over = [&](const lock::LockName& name, const Error& error) {
    found[name.text()] = unreadable(name, error.what());
  };
  visit_patiently(server, scope, {.ask = lock::status_request, .take = take, .pass_over = pass_over}, timeout);
  return found;
}

ByName<History> look_back(redis::Server& server, const Scope& scope, std::size_t count, Milliseconds timeout) {
  ByName<History> found;
  const auto ask = [&](const lock::LockName& name) { return lock::log_request(name, count); };
  const auto take = [&](const lock::LockName& name, lock::Fields fields) {
    found[name.text()] = read_history(name, std::move(fields));
    return std::size_t{0};
  };
  visit_patiently(server, scope, {.ask = ask, .take = take}, timeout);
  return found;
}

/// Asks every server once, so that the silent ones need not be waited for again. Throws unless a majority answers.
std::vector<bool> find_those_that_answer(std::span<redis::Server> servers, Milliseconds timeout) {
  const auto any = [](const lock::Fields&) { return true; };
  const auto still = [&](std::span<const lock::CallResult> answers) {
    return lock::Ballot{answers, any}.passed() ? std::optional{grace} : std::nullopt;
  };
  const lock::Request time{.command = {"TIME"}};
  const auto answers = lock::call_everywhere(servers, time, BootClock::now() + timeout, still);
  const lock::Ballot ballot{answers, any};
  if (!ballot.passed())
    throw ballot.failure();
  std::vector<bool> answered;
  for (const lock::CallResult& answer : answers) answered.push_back(std::holds_alternative<lock::Fields>(answer));
  return answered;
}

/// The servers of a quorum, which of them answer, and the locks that any of these knows.
class Quorum {
 public:
  Quorum(std::span<redis::Server> servers, const Scope& scope, Milliseconds timeout)
      : servers_(servers),
        timeout_(timeout),
        answers_(find_those_that_answer(servers, timeout)),
        scope_{.prefix = scope.prefix, .names = scope.names} {
    if (scope.must_list())
      add_names(scope);
  }

  const Scope& scope() const { return scope_; }

  /// Calls action(server, answers) for each server.
  template <typename Action>
  void for_each(Action action) const {
    for (std::size_t i = 0; i < servers_.size(); ++i) action(servers_[i], static_cast<bool>(answers_[i]));
  }

 private:
  void add_names(const Scope& scope) {
    std::map<std::string, lock::LockName> listed;
    for_each([&](redis::Server& server, bool answers) {
      if (!answers)
        return;
      Budget budget{server};
      for (lock::LockName& name : list_locks(server, scope, timeout_, budget))
        listed.emplace(name.text(), std::move(name));
    });
    for (const lock::LockName& name : scope.names) listed.erase(name.text());
    for (auto& [text, name] : listed) scope_.names.push_back(std::move(name));
  }

  std::span<redis::Server> servers_;
  Milliseconds timeout_;
  std::vector<bool> answers_;
  Scope scope_;  // names every lock, so that all servers are asked about the same ones
};

std::vector<LockFacts> look_at_quorum(const Quorum& quorum, Milliseconds timeout) {
  std::vector<ServerView> views;
  quorum.for_each([&](redis::Server& server, bool answers) {
    views.push_back({.url = server.address().url});
    if (answers)
      views.back().facts = in_order(look(server, quorum.scope(), timeout), quorum.scope());
  });
  return merge(views, quorum.scope().names.size());
}

/// A keeper on this machine that was killed no longer renews.
void mark_dead_holders(std::vector<LockFacts>& locks) {
  for (LockFacts& lock : locks) {
    for (HolderFacts& holder : lock.holders) {
      holder.dead = holder.has_keeper && lock::is_gone(holder.owner);
      holder.has_keeper = holder.has_keeper && !holder.dead;
    }
  }
}

std::vector<History> look_back_at_quorum(const Quorum& quorum, std::size_t count, Milliseconds timeout) {
  ByName<std::vector<History>> found;
  quorum.for_each([&](redis::Server& server, bool answers) {
    if (!answers)
      return;
    for (auto& [name, history] : look_back(server, quorum.scope(), count, timeout))
      found[name].push_back(std::move(history));
  });
  ByName<History> merged;
  for (const auto& [name, histories] : found) merged[name] = merge_histories(histories, count);
  return in_order(std::move(merged), quorum.scope());
}

}  // namespace

std::vector<LockFacts> merge(const std::vector<ServerView>& views, std::size_t count) {
  std::vector<LockFacts> all;
  for (std::size_t index = 0; index < count; ++index) all.push_back(merge_one(views, index));
  return all;
}

std::vector<LockFacts> survey(std::span<redis::Server> servers, const Scope& scope, Milliseconds timeout) {
  std::vector<LockFacts> locks;
  if (servers.size() == 1) {
    locks = in_order(look(servers.front(), scope, timeout), scope);
  } else if (const Quorum quorum{servers, scope, timeout}; !quorum.scope().names.empty()) {
    locks = look_at_quorum(quorum, timeout);
  }
  mark_dead_holders(locks);
  return locks;
}

std::vector<History> survey_histories(std::span<redis::Server> servers,
                                      const Scope& scope,
                                      std::size_t count,
                                      Milliseconds timeout) {
  if (servers.size() == 1)
    return in_order(look_back(servers.front(), scope, count, timeout), scope);
  const Quorum quorum{servers, scope, timeout};
  return quorum.scope().names.empty() ? std::vector<History>{} : look_back_at_quorum(quorum, count, timeout);
}

std::vector<LockFacts> sample(redis::Server& server, const Scope& scope, Milliseconds timeout) {
  std::vector<LockFacts> sampled;
  const auto take = [&](const lock::LockName& name, lock::Fields fields) {
    return size_of(sampled.emplace_back(read_facts(name, std::move(fields))));
  };
  const Inquiry inquiry{.ask = lock::status_request, .take = take};
  Budget budget{server};
  const auto names = sample_locks(server, scope, timeout, budget);
  Inquirer{inquiry, timeout, budget}.ask_all({.node = server, .whole = server}, names);
  return sampled;
}

}  // namespace rlock::observe
