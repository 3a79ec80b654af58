#include "redis/exchange.h"

namespace rlock::redis {
namespace {

template <typename Peer>
std::vector<Reply> finish(Loop& loop, Peer& peer) {
  while (!peer.advance()) {
    pollfd interest = peer.interest();
    loop.wait({&interest, 1}, peer.deadline());
  }
  return peer.take_replies();
}

}  // namespace

std::vector<Reply> call(Loop& loop, Connection& connection, const std::vector<Command>& commands, Deadline deadline) {
  connection.begin(commands, deadline);
  return finish(loop, connection);
}

std::vector<Reply> call(Loop& loop, Server& server, const std::vector<Command>& commands, Deadline deadline) {
  server.begin(commands, deadline);
  return finish(loop, server);
}

std::vector<Reply> follow_up(Loop& loop, Server& server, const std::vector<Command>& commands, Deadline deadline) {
  server.follow_up(commands, deadline);
  return finish(loop, server);
}

}  // namespace rlock::redis
