#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "redis/address.h"
#include "redis/reply.h"

namespace rlock::redis {

/// One line of CLUSTER NODES.
struct ClusterNode {
  Endpoint endpoint;
  bool is_master = false;   // and serves slots
  bool has_failed = false;  // a master that has, and still serves slots, was not replaced
};

/// The nodes that have an address, and have joined. A node that does not know its own
/// host is at the one where we `asked`. Hosts are names, where they were announced and `by_name` (TLS) wants them.
std::vector<ClusterNode> parse_cluster_nodes(std::string_view lines, const Endpoint& asked, bool by_name);

/// "MOVED 3999 127.0.0.1:6381" or "ASK ...": where to; nothing for what is no redirection.
std::optional<Endpoint> parse_redirection(const Reply& reply, const Endpoint& asked);

}  // namespace rlock::redis
