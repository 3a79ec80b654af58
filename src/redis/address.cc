#include "redis/address.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/escape.h"
#include "base/number.h"
#include "redis/masking.h"

namespace rlock::redis {
namespace {

constexpr std::uint16_t redis_port = 6379;
constexpr std::uint16_t sentinel_port = 26379;

bool quoted(std::string_view text) { return text.starts_with('"') || text.starts_with('\''); }

struct Scheme {
  std::string_view name;
  Address::Kind kind;
  bool tls;
};

constexpr std::array<Scheme, 6> schemes{{{"redis", Address::Kind::node, false},
                                         {"rediss", Address::Kind::node, true},
                                         {"redis-sentinel", Address::Kind::sentinel, false},
                                         {"rediss-sentinel", Address::Kind::sentinel, true},
                                         {"redis-cluster", Address::Kind::cluster, false},
                                         {"rediss-cluster", Address::Kind::cluster, true}}};

/// Reads the parts of one URL from left to right; every error names the URL.
class Parser {
 public:
  explicit Parser(std::string_view url) : rest_(url) {
    address_.url = mask_password(url);
    address_.bare_url = strip_password(url);
  }

  Address parse() {
    if (std::any_of(rest_.begin(), rest_.end(), [](unsigned char c) { return c <= ' ' || c == 0x7F; })) {
      fail("contains a space or control character; percent-encode it (%20 is a space)");
    }
    const auto colon = rest_.find("://");
    if (colon == std::string_view::npos)
      fail("no scheme; write redis://HOST[:PORT][/DB]");
    const std::string_view name = rest_.substr(0, colon);
    rest_.remove_prefix(colon + 3);
    if (name == "unix") {
      parse_unix();
      return std::move(address_);
    }
    const auto scheme = std::find_if(schemes.begin(), schemes.end(), [&](const Scheme& s) { return s.name == name; });
    if (scheme == schemes.end())
      fail(fmt::format("unknown scheme '{}'{}", name, quoted(name) ? "; write the URL without quotes" : ""));
    address_.kind = scheme->kind;
    if (scheme->tls)
      address_.tls.emplace();
    parse_network();
    return std::move(address_);
  }

 private:
  [[noreturn]] void fail(std::string why) const {
    mask_parameters(why);
    throw Error{ExitCode::usage, fmt::format("{}: {}", address_.url.empty() ? "empty Redis URL" : address_.url, why)};
  }

  std::string decoded(std::string_view text, std::string_view part) const {
    auto plain = percent_decode(text);
    if (!plain)
      fail(fmt::format("bad percent-encoding in the {}", part));
    return *std::move(plain);
  }

  void parse_database(std::string_view text) {
    const auto number = parse_number(text, 0, 1'000'000);
    if (!number)
      fail(fmt::format("bad database number '{}'", text));
    address_.database = *number;
  }

  void parse_network() {
    const auto at = rest_.rfind('@');
    const auto slash = rest_.find('/', at == std::string_view::npos ? 0 : at);
    std::string_view authority = rest_.substr(0, slash);
    std::string_view path = slash == std::string_view::npos ? "" : rest_.substr(slash + 1);
    const auto query = rest_.find_first_of("?#", at == std::string_view::npos ? 0 : at);
    if (query != std::string_view::npos)
      fail(fmt::format("unknown query parameter '{}'", rest_.substr(query + 1)));
    parse_user(authority);
    parse_hosts(authority);
    if (address_.kind == Address::Kind::sentinel)
      parse_master_name(path);
    if (!path.empty())
      parse_database(path);
  }

  /// Takes "user[:pass]@" off the front.
  void parse_user(std::string_view& authority) {
    const auto at = authority.rfind('@');
    if (at == std::string_view::npos)
      return;
    const std::string_view user = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    const auto colon = user.find(':');
    address_.credentials.user = decoded(user.substr(0, colon), "user name");
    if (colon != std::string_view::npos)
      address_.credentials.password = decoded(user.substr(colon + 1), "password");
    if (address_.kind == Address::Kind::sentinel)
      address_.sentinel = address_.credentials;
  }

  void parse_hosts(std::string_view hosts) {
    const bool sentinel = address_.kind == Address::Kind::sentinel;
    if (address_.kind == Address::Kind::node && hosts.find(',') != std::string_view::npos)
      fail("name one host only; for independent servers repeat --redis or separate URLs with spaces");
    for (bool more = true; more;) {
      const auto comma = hosts.find(',');
      more = comma != std::string_view::npos;
      parse_host(hosts.substr(0, comma), sentinel ? sentinel_port : redis_port);
      hosts.remove_prefix(more ? comma + 1 : hosts.size());
    }
  }

  void parse_host(std::string_view host, std::uint16_t default_port) {
    if (host.empty() || host[0] == ':')
      fail("no host");
    const auto endpoint = parse_endpoint(host, default_port);
    if (!endpoint)
      fail(fmt::format("bad host or port '{}'; write HOST[:PORT], with an IPv6 address in brackets",
                       looks_like_a_password(host) ? "***" : host));
    address_.endpoints.push_back(*endpoint);
    address_.endpoints.back().host = decoded(endpoint->host, "host");
  }

  /// Takes "master-name" off the front of the path, which may end with the database.
  void parse_master_name(std::string_view& path) {
    const auto slash = path.find('/');
    address_.master_name = decoded(path.substr(0, slash), "master name");
    if (address_.master_name.empty())
      fail("no master name; write redis-sentinel://HOST[:PORT]/MASTER-NAME");
    address_.must_be_master = true;
    path = slash == std::string_view::npos ? "" : path.substr(slash + 1);
  }

  void parse_unix() {
    const auto mark = rest_.find('?');
    Endpoint endpoint;
    endpoint.path = decoded(rest_.substr(0, mark), "path");
    if (!endpoint.path.starts_with('/'))
      fail("write the absolute path of the socket: unix:///PATH");
    if (endpoint.path.size() >= sizeof sockaddr_un::sun_path)
      fail("the path of the socket is too long");
    address_.endpoints.push_back(endpoint);
    if (mark == std::string_view::npos)
      return;
    const std::string_view query = rest_.substr(mark + 1);
    if (!query.starts_with("db="))
      fail(fmt::format("unknown query parameter '{}'", query.substr(0, query.find('='))));
    parse_database(query.substr(3));
  }

  std::string_view rest_;
  Address address_;
};

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.is_unix())
    return endpoint.path;
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", endpoint.host, v6 ? "]" : "", endpoint.port);
}

Address Address::at(const Endpoint& endpoint) const {
  Address node = *this;
  node.kind = Kind::node;
  node.endpoints = {endpoint};
  if (kind != Kind::node)
    node.url = fmt::format("{} ({})", url, to_string(endpoint));
  return node;
}

std::optional<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  Endpoint endpoint{.host = {}, .port = default_port, .path = {}};
  std::string_view port;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos)
      return std::nullopt;
    endpoint.host = text.substr(1, close - 1);
    port = text.substr(close + 1);
  } else {
    const auto colon = text.find(':');
    endpoint.host = text.substr(0, colon);
    if (colon != std::string_view::npos)
      port = text.substr(colon);
  }
  if (endpoint.host.empty())
    return std::nullopt;
  if (port.empty())
    return endpoint;
  const auto number = port[0] == ':' ? parse_number(port.substr(1), 1, 65535) : std::nullopt;
  if (!number)
    return std::nullopt;
  endpoint.port = static_cast<std::uint16_t>(*number);
  return endpoint;
}

Address parse_address(std::string_view url) { return Parser{url}.parse(); }

}  // namespace rlock::redis
