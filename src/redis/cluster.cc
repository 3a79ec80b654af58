#include "redis/cluster.h"

#include <fmt/format.h>

#include "base/word.h"

namespace rlock::redis {
namespace {

/// Reads "host:port", in which an IPv6 address needs no brackets and the host may be missing or "?".
std::optional<Endpoint> parse_node(std::string_view text, const Endpoint& asked) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return std::nullopt;
  Endpoint endpoint = asked;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  if (!host.empty() && host != "?")
    endpoint.host = host;
  const auto port = parse_endpoint(fmt::format("x{}", text.substr(colon)), 0);
  if (!port || port->port == 0 || endpoint.is_unix())
    return std::nullopt;
  endpoint.port = port->port;
  return endpoint;
}

bool has_flag(std::string_view flags, std::string_view wanted) {
  while (!flags.empty()) {
    if (take_word(flags, ',') == wanted)
      return true;
  }
  return false;
}

bool has_no_address(std::string_view flags) { return has_flag(flags, "handshake") || has_flag(flags, "noaddr"); }

/// "ID HOST:PORT@BUS[,NAME[,...]] FLAGS MASTER PING PONG EPOCH LINK SLOT..."
std::optional<ClusterNode> parse_line(std::string_view line, const Endpoint& asked, bool by_name) {
  take_word(line, ' ');
  std::string_view address = take_word(line, ' ');
  const std::string_view flags = take_word(line, ' ');
  const auto endpoint = parse_node(address.substr(0, address.find('@')), asked);
  if (!endpoint || has_no_address(flags))
    return std::nullopt;
  ClusterNode node{.endpoint = *endpoint};
  take_word(address, ',');
  const std::string_view name = take_word(address, ',');
  if (by_name && !name.empty())
    node.endpoint.host = name;
  for (int skipped = 0; skipped < 5; ++skipped) take_word(line, ' ');
  node.is_master = has_flag(flags, "master") && !line.empty();
  node.has_failed = has_flag(flags, "fail");
  return node;
}

}  // namespace

std::vector<ClusterNode> parse_cluster_nodes(std::string_view lines, const Endpoint& asked, bool by_name) {
  std::vector<ClusterNode> nodes;
  while (!lines.empty()) {
    if (const auto node = parse_line(take_word(lines, '\n'), asked, by_name))
      nodes.push_back(*node);
  }
  return nodes;
}

std::optional<Endpoint> parse_redirection(const Reply& reply, const Endpoint& asked) {
  if (!reply.is_error("MOVED") && !reply.is_error("ASK"))
    return std::nullopt;
  const std::string_view text{reply.text};
  return parse_node(text.substr(text.rfind(' ') + 1), asked);
}

}  // namespace rlock::redis
