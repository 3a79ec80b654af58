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
  bool has_failed = false;  // a failed master that still serves slots has not been replaced
};

/// The nodes that have joined and have an address. A node listed without a host is at the host that we `asked`. With
/// `by_name` (for TLS) a node's announced host name is taken where there is one.
std::vector<ClusterNode> parse_cluster_nodes(std::string_view lines, const Endpoint& asked, bool by_name);

/// Where "MOVED 3999 127.0.0.1:6381" or "ASK ..." sends us; nothing for any other reply.
std::optional<Endpoint> parse_redirection(const Reply& reply, const Endpoint& asked);

}  // namespace rlock::redis
