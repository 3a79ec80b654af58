#include "redis/server.h"

#include <algorithm>
#include <utility>

#include "redis/cluster.h"

namespace rlock::redis {
namespace {

constexpr int most_redirections = 5;
constexpr std::size_t cluster_listing = 1024UL * 1024;  // bytes of CLUSTER NODES

ReplyLimits limits_for(const Address& address, ReplyLimits limits) {
  if (address.kind == Address::Kind::cluster)
    limits.bytes = std::max(limits.bytes, cluster_listing);
  return limits;
}

}  // namespace

Server::Server(Loop& loop, const Address& address, ReplyLimits limits, Log log)
    : loop_(&loop),
      address_(address),
      limits_(limits_for(address, limits)),
      log_(log),
      locator_(address),
      knows_cluster_(address.kind != Address::Kind::cluster) {}

void Server::begin(const std::vector<Command>& commands, Deadline deadline) {
  commands_ = commands;
  deadline_ = deadline;
  chances_left_ = locator_.chances();
  follows_up_ = false;
  replies_.clear();
  if (node_ && !asking_elsewhere_ && !locator_.must_ask()) {
    redirections_ = 0;
    ask(node_->address(), deadline_);
  } else {
    locate();
  }
}

std::vector<Reply> Server::call(const std::vector<Command>& commands, Deadline deadline) {
  begin(commands, deadline);
  return finish();
}

std::vector<Reply> Server::follow_up(const std::vector<Command>& commands, Deadline deadline) {
  if (!node_)
    throw connection_lost(address_);
  commands_ = commands;
  deadline_ = deadline;
  chances_left_ = 0;
  asks_for_nodes_ = false;
  follows_up_ = true;
  node_->follow_up(commands, deadline);
  state_ = State::asking;
  return finish();
}

std::vector<Reply> Server::finish() {
  while (!advance()) {
    pollfd fd = interest();
    loop_->wait({&fd, 1}, deadline());
  }
  return take_replies();
}

void Server::visit_nodes(Deadline deadline, ReplyLimits limits, const std::function<void(Server&)>& visit) {
  if (!is_spread())
    return visit(*this);
  const auto replies = call({{"CLUSTER", "NODES"}}, deadline);
  check_reply(address_, replies[0]);
  const Endpoint& asked = node_->address().endpoints[0];
  for (const ClusterNode& node : parse_cluster_nodes(replies[0].text, asked, address_.tls.has_value())) {
    if (!node.is_master)
      continue;
    Server master{*loop_, address_.at(node.endpoint), limits};
    visit(master);
  }
}

void Server::locate() {
  --chances_left_;
  redirections_ = 0;
  asking_elsewhere_ = false;
  state_ = State::locating;
  locator_.begin(deadline_);
}

pollfd Server::interest() const {
  if (state_ == State::locating)
    return locator_.interest();
  return node_ ? node_->interest() : pollfd{-1, 0, 0};
}

Deadline Server::deadline() const {
  if (state_ == State::locating)
    return locator_.deadline();
  return node_ ? node_->deadline() : never;
}

void Server::abandon() {
  if (state_ == State::asking)
    node_->abandon();
  state_ = State::idle;
}

void Server::listen_on(std::string channel) {
  channel_ = refusal_to_listen_ ? std::string{} : std::move(channel);
  if (node_)
    node_->listen_on(channel_);
}

void Server::hear() {
  if (node_ && state_ == State::idle)
    node_->hear();
}

std::vector<std::string> Server::take_messages() { return node_ ? node_->take_messages() : std::vector<std::string>{}; }

void Server::ask(const Address& node, Deadline deadline) {
  if (!node_ || node_->address().endpoints != node.endpoints) {
    node_ = std::make_unique<Connection>(node, limits_, was_reached());
    node_->listen_on(channel_);
  }
  asks_for_nodes_ = !knows_cluster_ && !asking_elsewhere_;
  node_->begin(commands_for_node(), deadline);
  state_ = State::asking;
}

std::vector<Command> Server::commands_for_node() const {
  std::vector<Command> commands;
  if (asks_for_nodes_)
    commands.push_back({"CLUSTER", "NODES"});
  for (const Command& command : commands_) {
    if (asking_elsewhere_)
      commands.push_back({"ASKING"});  // it is valid for one command
    commands.push_back(command);
  }
  return commands;
}

bool Server::advance() {
  for (;;) {
    try {
      return step();
    } catch (const Error& error) {
      asked_ = asked_ || (node_ && node_->was_asked());
      reached_ = reached_ || locator_.was_reached() || (node_ && node_->was_reached());
      forget_node();
      if (!error.may_pass() || chances_left_ == 0 || BootClock::now() >= deadline_)
        throw;
      log_.step([&] { return std::string{error.what()} + "; asking elsewhere"; });
      locate();
    }
  }
}

bool Server::step() {
  for (;;) {
    if (state_ == State::locating) {
      const auto node = locator_.advance();
      if (!node)
        return false;
      const auto now = BootClock::now();
      const bool others = !locator_.is_certain() && chances_left_ > 0;
      ask(*node, others ? now + (deadline_ - now) / 2 : deadline_);
    }
    if (!advance_node())
      return false;
    reached_ = true;
    if (must_stop_listening())
      continue;
    take_answers();
    if (look_at_answers())
      return true;
  }
}

bool Server::advance_node() {
  const bool was_open = node_->is_open();
  const bool has_answered = node_->advance();
  if (!was_open && node_->is_open())
    log_.step([&] { return "connected to " + node_->address().url; });
  return has_answered;
}

/// Gives up listening if the server refuses it. True when the request must be sent again on a new connection, because
/// UNSUBSCRIBE was refused and a subscribed connection cannot ask.
bool Server::must_stop_listening() {
  const auto why = node_->refusal_to_listen();
  if (!why || why->code() != ExitCode::no_permission)
    return false;
  refusal_to_listen_ = why;
  listen_on({});
  if (!node_->listens())
    return false;
  node_->close();
  if (follows_up_)
    throw connection_lost(address_);
  ask(Address{node_->address()}, deadline_);
  return true;
}

/// Keeps the answers to the caller's own commands, without those to CLUSTER NODES and ASKING.
void Server::take_answers() {
  replies_ = node_->take_replies();
  if (asks_for_nodes_) {
    const Endpoint& asked = node_->address().endpoints[0];
    std::vector<Endpoint> nodes;
    for (const ClusterNode& node : parse_cluster_nodes(replies_[0].text, asked, address_.tls.has_value())) {
      if (!node.has_failed)
        nodes.push_back(node.endpoint);
    }
    locator_.learn(std::move(nodes));
    knows_cluster_ = true;
    replies_.erase(replies_.begin());
  }
  if (asking_elsewhere_ && !follows_up_) {
    std::vector<Reply> answers;
    for (std::size_t i = 1; i < replies_.size(); i += 2) answers.push_back(std::move(replies_[i]));
    replies_ = std::move(answers);
  }
}

/// True when these are the answers; false when another node must be asked.
bool Server::look_at_answers() {
  for (const Reply& reply : replies_) {
    if (address_.kind == Address::Kind::cluster && follow(reply))
      return false;
    if (address_.kind != Address::Kind::cluster && reply.is_error("MOVED"))
      throw Error{
          ExitCode::unavailable,
          address_.url + ": " + shown_words(reply) + "; this is a node of a Redis Cluster: write redis-cluster://",
          true};
    if (reply.is_error("READONLY") || reply.is_error("CLUSTERDOWN")) {
      forget_node();
      return true;
    }
  }
  state_ = State::idle;
  return true;
}

bool Server::follow(const Reply& reply) {
  const auto target = parse_redirection(reply, node_->address().endpoints[0]);
  if (!target)
    return false;
  if (++redirections_ > most_redirections)
    throw Error{ExitCode::unavailable, address_.url + ": redirected from node to node: " + shown_words(reply)};
  asking_elsewhere_ = reply.is_error("ASK");
  if (!asking_elsewhere_)
    locator_.moved_to(*target);
  ask(address_.at(*target), deadline_);
  return true;
}

void Server::forget_node() {
  locator_.forget();
  node_.reset();
  asking_elsewhere_ = false;
  knows_cluster_ = address_.kind != Address::Kind::cluster;  // it may have changed
  state_ = State::idle;
}

}  // namespace rlock::redis
