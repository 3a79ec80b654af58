#include "observe/survey.h"

#include <algorithm>
#include <map>

#include "lock/ballot.h"
#include "lock/permissions.h"
#include "lock/retry.h"
#include "lock/script_call.h"
#include "observe/merge.h"
#include "redis/cluster.h"
#include "redis/exchange.h"

namespace rlock::observe {
namespace {

constexpr Milliseconds grace{250};  // for the servers of a quorum that answer after a majority has

std::vector<LockFacts> survey_cluster(Loop& loop, redis::Server& cluster, const Scope& scope, Milliseconds timeout) {
  std::map<std::string, LockFacts> found;  // a key that moves meanwhile may be met twice
  for (redis::Server& master : find_masters(loop, cluster, timeout)) {
    const auto names = list_locks(loop, master, scope.prefix, timeout);
    for (LockFacts& facts : inspect(loop, master, names, timeout, cluster)) found[facts.name] = std::move(facts);
  }
  std::vector<LockFacts> all;
  for (auto& [name, facts] : found) all.push_back(std::move(facts));
  return all;
}

std::vector<LockFacts> survey_once(Loop& loop, redis::Server& server, const Scope& scope, Milliseconds timeout) {
  const bool cluster = server.address().kind == redis::Address::Kind::cluster;
  if (scope.names.empty() && cluster)
    return survey_cluster(loop, server, scope, timeout);
  if (scope.names.empty())
    return inspect(loop, server, list_locks(loop, server, scope.prefix, timeout), timeout, server);
  std::vector<LockFacts> all;
  for (const lock::LockName& name : scope.names) all.push_back(inspect(loop, server, name, BootClock::now() + timeout));
  return all;
}

std::vector<LockFacts> survey_one(Loop& loop, redis::Server& server, const Scope& scope, Milliseconds timeout) {
  try {
    return lock::persist(loop, server, timeout, BootClock::now() + timeout, [&](Deadline) {
      return survey_once(loop, server, scope, timeout);
    });
  } catch (const Error& error) {
    throw lock::explain(error, scope.prefix);
  }
}

/// Throws unless a majority answers; the others are not asked again.
std::vector<bool> find_those_that_answer(Loop& loop, std::span<redis::Server> servers, Milliseconds timeout) {
  const auto any = [](const lock::Fields&) { return true; };
  const auto still = [&](std::span<const lock::Answered> answers) {
    return lock::Ballot{answers, any}.passed() ? std::optional{grace} : std::nullopt;
  };
  const lock::Request time{.command = {"TIME"}};
  const auto answers = lock::call_everywhere(loop, servers, time, BootClock::now() + timeout, still);
  const lock::Ballot ballot{answers, any};
  if (!ballot.passed())
    throw ballot.failure();
  std::vector<bool> answered;
  for (const lock::Answered& answer : answers) answered.push_back(std::holds_alternative<lock::Fields>(answer));
  return answered;
}

/// The names that any of the servers knows.
std::vector<lock::LockName> list_everywhere(Loop& loop,
                                            std::span<redis::Server> servers,
                                            const std::vector<bool>& answers,
                                            const std::string& prefix,
                                            Milliseconds timeout) {
  std::map<std::string, lock::LockName> names;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (!answers[i])
      continue;
    for (lock::LockName& name : list_locks(loop, servers[i], prefix, timeout))
      names.emplace(name.text(), std::move(name));
  }
  std::vector<lock::LockName> all;
  for (auto& [text, name] : names) all.push_back(std::move(name));
  return all;
}

std::vector<LockFacts> survey_quorum(Loop& loop, std::span<redis::Server> servers, Scope scope, Milliseconds timeout) {
  const auto answers = find_those_that_answer(loop, servers, timeout);
  if (scope.names.empty())
    scope.names = list_everywhere(loop, servers, answers, scope.prefix, timeout);
  if (scope.names.empty())
    return {};
  std::vector<ServerView> views;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    views.push_back({.url = servers[i].address().url, .facts = {}});
    if (answers[i])
      views.back().facts = survey_one(loop, servers[i], scope, timeout);
  }
  return merge(views, scope.names.size());
}

}  // namespace

std::vector<LockFacts> survey(Loop& loop, std::span<redis::Server> servers, const Scope& scope, Milliseconds timeout) {
  return servers.size() > 1 ? survey_quorum(loop, servers, scope, timeout)
                            : survey_one(loop, servers.front(), scope, timeout);
}

std::vector<redis::Server> find_masters(Loop& loop, redis::Server& cluster, Milliseconds timeout) {
  const auto replies = redis::call(loop, cluster, {{"CLUSTER", "NODES"}}, BootClock::now() + timeout);
  lock::check_reply(cluster.address(), replies[0]);
  const redis::Endpoint& asked = cluster.node()->endpoints[0];
  std::vector<redis::Server> masters;
  for (const auto& node : redis::parse_cluster_nodes(replies[0].text, asked, cluster.address().tls.has_value())) {
    if (node.is_master)
      masters.emplace_back(cluster.address().at(node.endpoint), listing_limits);
  }
  return masters;
}

}  // namespace rlock::observe
