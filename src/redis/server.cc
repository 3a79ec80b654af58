#include "redis/server.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace rlock::redis {
namespace {

constexpr int most_redirections = 5;

/// "MOVED 3999 127.0.0.1:6381" or "ASK ...": where to. A node that does not know its own address names none: the host
/// is then the one that it was asked at.
std::optional<Endpoint> target_of(const Reply& reply, const Endpoint& asked) {
  const std::string_view text{reply.text};
  const std::string_view where = text.substr(text.rfind(' ') + 1);
  if (where.starts_with(':'))
    return parse_endpoint(asked.host + std::string{where}, 0);
  const auto colon = where.rfind(':');
  const bool bare_v6 = colon != std::string_view::npos && where.find(':') != colon && !where.starts_with('[');
  if (!bare_v6)
    return parse_endpoint(where, 0);
  return parse_endpoint(fmt::format("[{}]{}", where.substr(0, colon), where.substr(colon)), 0);
}

}  // namespace

Server::Server(const Address& address, ReplyLimits limits) : address_(address), limits_(limits), locator_(address) {}

void Server::begin(const std::vector<Command>& commands, Deadline deadline) {
  commands_ = commands;
  deadline_ = deadline;
  redirections_ = 0;
  replies_.clear();
  if (node_ && !asking_elsewhere_) {
    start_asking(node_->address());
    return;
  }
  asking_elsewhere_ = false;
  state_ = State::locating;
  locator_.begin(deadline);
}

pollfd Server::interest() const { return state_ == State::locating ? locator_.interest() : node_->interest(); }

Deadline Server::deadline() const { return state_ == State::locating ? locator_.deadline() : node_->deadline(); }

void Server::abandon() {
  if (node_)
    node_->close();
}

void Server::start_asking(const Address& node) {
  if (!node_ || node_->address().endpoints != node.endpoints)
    node_ = std::make_unique<Connection>(node, limits_);
  std::vector<Command> commands = commands_;
  if (asking_elsewhere_) {
    // Before each of them: ASKING counts for one command.
    for (std::size_t i = commands.size(); i-- > 0;)
      commands.insert(commands.begin() + static_cast<long>(i), {"ASKING"});
  }
  node_->begin(commands, deadline_);
  state_ = State::asking;
}

bool Server::advance() {
  try {
    for (;;) {
      if (state_ == State::locating) {
        const auto node = locator_.advance();
        if (!node)
          return false;
        start_asking(*node);
      }
      if (!node_->advance())
        return false;
      reached_ = true;
      if (look_at_replies())
        return true;
    }
  } catch (const Error&) {
    reached_ = reached_ || (node_ && node_->was_reached());
    forget_node();
    throw;
  }
}

/// True when these are the answers; false when another node must be asked.
bool Server::look_at_replies() {
  replies_ = node_->take_replies();
  if (asking_elsewhere_) {
    std::vector<Reply> answers;
    for (std::size_t i = 1; i < replies_.size(); i += 2) answers.push_back(std::move(replies_[i]));
    replies_ = std::move(answers);
  }
  for (const Reply& reply : replies_) {
    if (address_.kind == Address::Kind::cluster && follow(reply))
      return false;
    if (reply.is_error("READONLY") || reply.is_error("CLUSTERDOWN"))
      forget_node();
  }
  state_ = State::idle;
  return true;
}

bool Server::follow(const Reply& reply) {
  const bool moved = reply.is_error("MOVED");
  if (!moved && !reply.is_error("ASK"))
    return false;
  const auto target = target_of(reply, node_->address().endpoints[0]);
  if (!target || ++redirections_ > most_redirections) {
    throw Error{ExitCode::unavailable, address_.url + ": sent from node to node: " + reply.text};
  }
  asking_elsewhere_ = !moved;
  if (moved)
    locator_.moved_to(*target);
  start_asking(address_.at(*target));
  return true;
}

void Server::forget_node() {
  locator_.forget();
  node_.reset();
  asking_elsewhere_ = false;
  state_ = State::idle;
}

}  // namespace rlock::redis
