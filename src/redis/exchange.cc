#include "redis/exchange.h"

namespace rlock::redis {

std::vector<Reply> call(Loop& loop, Connection& connection, const std::vector<Command>& commands, Deadline deadline) {
  connection.begin(commands, deadline);
  while (!connection.advance()) {
    pollfd interest = connection.interest();
    loop.wait({&interest, 1}, connection.deadline());
  }
  return connection.take_replies();
}

}  // namespace rlock::redis
