#include "redis/exchange.h"

#include <algorithm>
#include <iterator>

namespace rlock::redis {
namespace {

std::vector<Reply> finish(Loop& loop, Server& server) {
  while (!server.advance()) {
    pollfd interest = server.interest();
    loop.wait({&interest, 1}, server.deadline());
  }
  return server.take_replies();
}

}  // namespace

std::vector<Reply> call(Loop& loop, Server& server, const std::vector<Command>& commands, Deadline deadline) {
  server.begin(commands, deadline);
  return finish(loop, server);
}

std::vector<Reply> follow_up(Loop& loop, Server& server, const std::vector<Command>& commands, Deadline deadline) {
  server.follow_up(commands, deadline);
  return finish(loop, server);
}

void await_messages(Loop& loop, std::span<Server> servers, Deadline until) {
  std::vector<pollfd> fds;
  for (const Server& server : servers) {
    fds.push_back(server.interest());
    until = std::min(until, server.deadline());
  }
  if (loop.wait(fds, until) == Loop::Wake::event)
    return;
  for (Server& server : servers) server.hear();
}

std::vector<std::string> take_messages(std::span<Server> servers) {
  std::vector<std::string> all;
  for (Server& server : servers) {
    auto messages = server.take_messages();
    std::move(messages.begin(), messages.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace rlock::redis
