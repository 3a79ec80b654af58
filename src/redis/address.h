#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::redis {

/// Who we are to Redis. A password is a secret: it appears in no message.
struct Credentials {
  std::string user;  // empty: the default user
  std::optional<std::string> password;
  std::string password_file;  // read for each new connection, because passwords are changed while we run
  std::string origin;         // of the password: "RLOCK_PASSWORD", "the URL in /etc/rlock.conf:1"; for messages

  /// The first line of the file if one is named, else the password, else nothing. Throws Error{config} that names the
  /// file, also for one that somebody else could have written.
  std::optional<std::string> current_password() const;
};

/// Where a stream socket leads: host and port, or the path of a unix socket.
struct Endpoint {
  std::string host{};  // without brackets; empty for a unix socket
  std::uint16_t port = 6379;
  std::string path{};

  bool is_unix() const { return !path.empty(); }
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// "127.0.0.1:6379", "[::1]:6379" or "/run/redis.sock".
std::string to_string(const Endpoint& endpoint);

/// How to speak TLS. Paths may be empty.
struct TlsOptions {
  std::string ca;           // file or hashed directory; empty: the system's
  std::string certificate;  // ours; the file may hold its key too
  std::string key;          // empty: in the file of the certificate
  std::string server_name;  // expected in the server's certificate instead of the host
  bool insecure = false;    // nothing is verified

  const std::string& key_file() const { return key.empty() ? certificate : key; }
  friend bool operator==(const TlsOptions&, const TlsOptions&) = default;
};

/// What one URL says.
struct Address {
  enum class Kind {
    node,      // endpoints[0] itself
    sentinel,  // the master that the sentinels at the endpoints name
    cluster,   // whichever node of the cluster serves the key
  };

  std::string url;       // as given, its password masked: for messages
  std::string bare_url;  // as given, without its password: for the environment of a command
  std::string origin{};  // where it was given, for messages: "--redis", "/etc/rlock.conf:1: redis"
  Kind kind = Kind::node;
  std::vector<Endpoint> endpoints;      // at least one
  std::string master_name;              // of a sentinel URL
  std::optional<Credentials> sentinel;  // our user and password for the sentinels
  Credentials credentials;              // our user and password for the servers
  int database = 0;
  std::optional<TlsOptions> tls;
  bool must_be_master = false;     // verified with ROLE before anything is asked
  bool password_optional = false;  // a sentinel may want none though its servers do

  /// The address of one of its nodes, with the same credentials and TLS options.
  Address at(const Endpoint& endpoint) const;
};

/// Reads the URLs of rlock(1): redis, rediss, unix, redis-sentinel, rediss-sentinel, redis-cluster, rediss-cluster;
/// percent-encoding is decoded. Throws Error{usage} that names the URL with its password masked.
Address parse_address(std::string_view url);

/// Reads "host", "host:port", "[v6]" or "[v6]:port"; returns nothing for anything else.
std::optional<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);

/// The URL with any password in it replaced by "***"; works on malformed ones too.
std::string mask_password(std::string_view url);

/// The URL without its password, for the environment of a command.
std::string strip_password(std::string_view url);

/// Overwrites the password of a URL in place: in our own arguments, which ps shows while we run.
void blot_password(std::span<char> url);

}  // namespace rlock::redis
