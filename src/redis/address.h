#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redis/credentials.h"

namespace rlock::redis {

/// Where a stream socket leads: host and port, or the path of a unix socket.
struct Endpoint {
  std::string host;  // without brackets; empty for a unix socket
  std::uint16_t port = 6379;
  std::string path;

  bool is_unix() const { return !path.empty(); }
};

/// "127.0.0.1:6379", "[::1]:6379" or "/run/redis.sock".
std::string to_string(const Endpoint& endpoint);

/// What one URL says.
struct Address {
  std::string url;       // as given, its password masked: for messages
  std::string bare_url;  // as given, without its password: for the environment of a command
  Endpoint endpoint;
  Credentials credentials;
  int database = 0;
};

/// Reads redis://[user[:pass]@]host[:port][/db] and unix:///path[?db=N]; percent-encoding is decoded.
/// Throws Error{usage} that names the URL with its password masked.
Address parse_address(std::string_view url);

/// The URL with any password in it replaced by "***"; works on malformed ones too.
std::string mask_password(std::string_view url);

/// The URL without its password, for the environment of a command.
std::string strip_password(std::string_view url);

}  // namespace rlock::redis
