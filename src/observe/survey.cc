#include "observe/survey.h"

#include <map>

#include "lock/ballot.h"
#include "lock/permissions.h"
#include "lock/retry.h"
#include "lock/script_call.h"
#include "observe/budget.h"
#include "observe/inquiry.h"
#include "observe/merge.h"
#include "redis/cluster.h"
#include "redis/exchange.h"
#include "redis/refusal.h"

namespace rlock::observe {
namespace {

constexpr Milliseconds grace{250};  // how long to wait for the other servers once a majority has answered

/// Asks one server, or all masters of a cluster, about every lock of the scope.
void visit(Loop& loop, redis::Server& server, const Scope& scope, const Inquiry& inquiry, Milliseconds timeout) {
  Budget budget{server};
  Inquirer inquirer{loop, inquiry, timeout, budget};
  const auto ask_about_listed = [&](redis::Server& node) {
    inquirer.ask_all({.node = node, .whole = server}, list_locks(loop, node, scope, timeout, budget));
  };
  if (server.address().kind == redis::Address::Kind::cluster) {
    for (const lock::LockName& name : scope.names) inquirer.ask(server, name);  // each may be on another node
    if (!scope.must_list())
      return;
    for (redis::Server& master : find_masters(loop, server, timeout)) ask_about_listed(master);
  } else {
    inquirer.ask_all({.node = server, .whole = server}, scope.names);
    if (scope.must_list())
      ask_about_listed(server);
  }
}

/// Calls visit() again while it fails and time is left.
void visit_patiently(
    Loop& loop, redis::Server& server, const Scope& scope, const Inquiry& inquiry, Milliseconds timeout) {
  try {
    lock::persist(loop, server, timeout, [&](Deadline) { visit(loop, server, scope, inquiry, timeout); });
  } catch (const Error& error) {
    throw lock::explain(error, scope.prefix);
  }
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

ByName<LockFacts> look(Loop& loop, redis::Server& server, const Scope& scope, Milliseconds timeout) {
  ByName<LockFacts> found;
  const auto take = [&](const lock::LockName& name, lock::Fields fields) {
    found[name.text()] = read_facts(name, std::move(fields));
  };
  const auto pass_over = [&](const lock::LockName& name, const Error& error) {
    found[name.text()] = unreadable(name, error.what());
  };
  visit_patiently(loop, server, scope, {.ask = status_request, .take = take, .pass_over = pass_over}, timeout);
  return found;
}

ByName<History> look_back(
    Loop& loop, redis::Server& server, const Scope& scope, std::size_t count, Milliseconds timeout) {
  ByName<History> found;
  const auto ask = [&](const lock::LockName& name) { return history_request(name, count); };
  const auto take = [&](const lock::LockName& name, lock::Fields fields) {
    found[name.text()] = read_history(name, std::move(fields));
  };
  const auto pass_over = [](const lock::LockName&, const Error&) {};
  visit_patiently(loop, server, scope, {.ask = ask, .take = take, .pass_over = pass_over}, timeout);
  return found;
}

/// Asks every server once, so that the silent ones need not be waited for again. Throws unless a majority answers.
std::vector<bool> find_those_that_answer(Loop& loop, std::span<redis::Server> servers, Milliseconds timeout) {
  const auto any = [](const lock::Fields&) { return true; };
  const auto still = [&](std::span<const lock::CallResult> answers) {
    return lock::Ballot{answers, any}.passed() ? std::optional{grace} : std::nullopt;
  };
  const lock::Request time{.command = {"TIME"}};
  const auto answers = lock::call_everywhere(loop, servers, time, BootClock::now() + timeout, still);
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
  Quorum(Loop& loop, std::span<redis::Server> servers, const Scope& scope, Milliseconds timeout)
      : loop_(loop),
        servers_(servers),
        timeout_(timeout),
        answers_(find_those_that_answer(loop, servers, timeout)),
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
      for (lock::LockName& name : list_locks(loop_, server, scope, timeout_, budget))
        listed.emplace(name.text(), std::move(name));
    });
    for (const lock::LockName& name : scope.names) listed.erase(name.text());
    for (auto& [text, name] : listed) scope_.names.push_back(std::move(name));
  }

  Loop& loop_;
  std::span<redis::Server> servers_;
  Milliseconds timeout_;
  std::vector<bool> answers_;
  Scope scope_;  // names every lock, so that all servers are asked about the same ones
};

std::vector<LockFacts> look_at_quorum(Loop& loop, const Quorum& quorum, Milliseconds timeout) {
  std::vector<ServerView> views;
  quorum.for_each([&](redis::Server& server, bool answers) {
    views.push_back({.url = server.address().url, .facts = {}});
    if (answers)
      views.back().facts = in_order(look(loop, server, quorum.scope(), timeout), quorum.scope());
  });
  return merge(views, quorum.scope().names.size());
}

std::vector<History> look_back_at_quorum(Loop& loop, const Quorum& quorum, std::size_t count, Milliseconds timeout) {
  ByName<std::vector<History>> found;
  quorum.for_each([&](redis::Server& server, bool answers) {
    if (!answers)
      return;
    for (auto& [name, history] : look_back(loop, server, quorum.scope(), count, timeout))
      found[name].push_back(std::move(history));
  });
  ByName<History> merged;
  for (const auto& [name, histories] : found) merged[name] = merge_histories(histories, count);
  return in_order(std::move(merged), quorum.scope());
}

}  // namespace

std::vector<LockFacts> survey(Loop& loop, std::span<redis::Server> servers, const Scope& scope, Milliseconds timeout) {
  if (servers.size() == 1)
    return in_order(look(loop, servers.front(), scope, timeout), scope);
  const Quorum quorum{loop, servers, scope, timeout};
  return quorum.scope().names.empty() ? std::vector<LockFacts>{} : look_at_quorum(loop, quorum, timeout);
}

std::vector<History> survey_histories(
    Loop& loop, std::span<redis::Server> servers, const Scope& scope, std::size_t count, Milliseconds timeout) {
  if (servers.size() == 1)
    return in_order(look_back(loop, servers.front(), scope, count, timeout), scope);
  const Quorum quorum{loop, servers, scope, timeout};
  return quorum.scope().names.empty() ? std::vector<History>{} : look_back_at_quorum(loop, quorum, count, timeout);
}

std::vector<redis::Server> find_masters(Loop& loop, redis::Server& cluster, Milliseconds timeout) {
  const auto replies = redis::call(loop, cluster, {{"CLUSTER", "NODES"}}, BootClock::now() + timeout);
  redis::check_reply(cluster.address(), replies[0]);
  const redis::Endpoint& asked = cluster.node()->endpoints[0];
  std::vector<redis::Server> masters;
  for (const auto& node : redis::parse_cluster_nodes(replies[0].text, asked, cluster.address().tls.has_value())) {
    if (node.is_master)
      masters.emplace_back(cluster.address().at(node.endpoint), listing_limits);
  }
  return masters;
}

}  // namespace rlock::observe
