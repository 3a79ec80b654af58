#include "redis/exchange.h"

namespace rlock::redis {
namespace {

template <typename Peer>
std::vector<Reply> call_one(Loop& loop, Peer& peer, const std::vector<Command>& commands, Deadline deadline) {
  peer.begin(commands, deadline);
  while (!peer.advance()) {
    pollfd interest = peer.interest();
    loop.wait({&interest, 1}, peer.deadline());
  }
  return peer.take_replies();
}

}  // namespace

std::vector<Reply> call(Loop& loop, Connection& connection, const std::vector<Command>& commands, Deadline deadline) {
  return call_one(loop, connection, commands, deadline);
}

std::vector<Reply> call(Loop& loop, Server& server, const std::vector<Command>& commands, Deadline deadline) {
  return call_one(loop, server, commands, deadline);
}

}  // namespace rlock::redis
