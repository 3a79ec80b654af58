#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/loop.h"
#include "redis/server.h"

namespace rlock::redis {

/// Sends the commands and waits for their replies, while `loop`'s handlers run. Throws as Server does. What a
/// handler throws passes through; the next exchange then drops this one.
std::vector<Reply> call(Loop& loop, Server& server, const std::vector<Command>& commands, Deadline deadline);

/// The same on the connection that the server's last answer came from; throws if that was lost.
std::vector<Reply> follow_up(Loop& loop, Server& server, const std::vector<Command>& commands, Deadline deadline);

/// Sleeps until one of the servers has sent a message, a handler has run or a connection has broken, at most until the
/// deadline.
void await_messages(Loop& loop, std::span<Server> servers, Deadline until);
/// The messages that have come since the last answer of each.
std::vector<std::string> take_messages(std::span<Server> servers);

}  // namespace rlock::redis
