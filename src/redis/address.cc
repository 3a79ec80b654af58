#include "redis/address.h"

#include <fmt/format.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/trust.h"
#include "base/word.h"

namespace rlock::redis {
namespace {

/// Reads the first line into `buffer`, or as much of it as fits. A pipe may bring it in parts. Returns nothing, and
/// sets errno, if it cannot be read.
std::optional<std::string_view> read_line(const Fd& fd, std::span<char> buffer) {
  std::string_view text;
  while (text.size() < buffer.size() && text.find('\n') == std::string_view::npos) {
    const ssize_t count = ::read(fd.get(), buffer.data() + text.size(), buffer.size() - text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return std::nullopt;
    if (count == 0)
      break;
    text = {buffer.data(), text.size() + static_cast<std::size_t>(count)};
  }
  return text.substr(0, text.find('\n'));
}

constexpr std::uint16_t redis_port = 6379;
constexpr std::uint16_t sentinel_port = 26379;

/// A scheme may be written in upper case.
bool names_socket(std::string_view url) { return lower(url.substr(0, 5)) == "unix:"; }

/// Where the password stands in a URL: between the first ':' and the last '@' of "//user:pass@host".
struct Span {
  std::size_t begin, end;
  bool without_user;
};

std::optional<Span> find_password(std::string_view url) {
  const auto slashes = url.find("://");
  const auto start = slashes == std::string_view::npos ? 0 : slashes + 3;
  // A password may contain an unencoded '/' or '?', so the last '@' of all counts, lest a part of it be shown. In the
  // path of a socket an '@' means nothing.
  const bool is_unix = names_socket(url);
  const auto at = is_unix ? url.substr(0, url.find('/', start)).rfind('@') : url.rfind('@');
  const auto colon = url.find(':', start);
  if (at == std::string_view::npos || at < start || colon > at)
    return std::nullopt;
  return Span{.begin = colon + 1, .end = at, .without_user = colon == start};
}

/// Masks the values of parameters such as "?password=secret", which we refuse but other programs accept. Of the values
/// in a query we can only tell that a "db" is no secret.
void mask_parameters(std::string& text) {
  for (auto equals = text.find('='); equals != std::string::npos; equals = text.find('=', equals + 1)) {
    auto begin = equals;
    while (begin > 0 && is_part_of_name(text[begin - 1])) --begin;
    const std::string_view name = std::string_view{text}.substr(begin, equals - begin);
    const bool is_query = text.find('?') < begin && name != "db";
    if (!is_query && name.find("pass") == std::string_view::npos && name.find("auth") == std::string_view::npos)
      continue;
    const auto end = std::min(text.find('&', equals), text.size());
    text.replace(equals + 1, end - equals - 1, "***");
  }
}

/// Whether this is "user:secret" rather than "host:port": a space in the password has cut off the "@host".
bool looks_like_a_password(std::string_view host) {
  const auto colon = host.find(':');
  if (colon == std::string_view::npos || host.starts_with('[') || host.starts_with("::"))  // an IPv6 address
    return false;
  const std::string_view name = host.substr(0, colon);
  return !is_digits(host.substr(colon + 1)) && name != "localhost" && name.find('.') == std::string_view::npos;
}

void mask_stray_password(std::string& url) {
  const auto slashes = url.find("://");
  if (slashes == std::string::npos || url.find('@', slashes) != std::string::npos)
    return;
  const auto start = slashes + 3;
  const auto end = std::min(url.find_first_of("/?,", start), url.size());
  const std::string_view host = std::string_view{url}.substr(start, end - start);
  if (looks_like_a_password(host))
    url.replace(start + host.find(':') + 1, std::string::npos, "***");
}

/// A user without a password may be a password: some clients take a lone word before the '@' for that.
void mask_bare_user(std::string& url) {
  const auto at = url.rfind('@');
  if (at == std::string::npos || names_socket(url) || find_password(url))
    return;
  const auto scheme = url.find("://");
  const auto begin = scheme == std::string::npos ? 0 : scheme + 3;
  url.replace(begin, at - begin, "***");
}

std::string_view name_of_parameter(std::string_view query) { return query.substr(0, query.find_first_of("=&")); }

std::string replace_password(std::string_view url, std::string_view with) {
  std::string out{url};
  if (const auto span = find_password(url))
    out.replace(span->begin, span->end - span->begin, with);
  return out;
}

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

std::string known_schemes() {
  std::string names = "it must be unix";
  for (const Scheme& scheme : schemes)
    names += fmt::format("{}{}", &scheme == &schemes.back() ? " or " : ", ", scheme.name);
  return names;
}

/// In upper or lower case (RFC 3986, 3.1).
const Scheme* find_scheme(std::string_view name) {
  const auto found = std::find_if(
      schemes.begin(), schemes.end(), [wanted = lower(name)](const Scheme& s) { return s.name == wanted; });
  return found == schemes.end() ? nullptr : &*found;
}

/// What may be meant by a text without "://": "redis://db1:6380" by db1:6380 or redis:/db1:6380, and a socket by a
/// path.
std::string guess_url(std::string_view text) {
  if (text.starts_with('/'))
    return fmt::format("unix://{}", text);
  if (std::string_view path = text; names_socket(path)) {
    path.remove_prefix(std::min(path.find_first_not_of('/', 5), path.size()));
    return fmt::format("unix:///{}", path);
  }
  std::string_view host = text, scheme = "redis";
  const auto end = std::min(text.find_first_of(":/"), text.size());
  const std::string_view word = text.substr(0, end), rest = text.substr(end);
  const bool has_port = rest.size() > 1 && rest[1] >= '0' && rest[1] <= '9';
  const bool is_known = find_scheme(word) != nullptr;
  if (rest.starts_with("//") || (is_known && rest.starts_with(':') && !has_port)) {
    scheme = is_known ? word : scheme;
    host.remove_prefix(std::min(text.find_first_not_of(":/", end), text.size()));
  }
  if (!parse_endpoint(host, redis_port) || looks_like_a_password(host) || host.find('@') != std::string_view::npos)
    return "redis://HOST[:PORT][/DB]";
  return fmt::format("{}://{}{}", scheme, is_digits(host) ? "127.0.0.1:" : "", host);
}

/// What is wrong with a scheme that is none of ours; other clients have others for the same.
std::string advise_scheme(std::string_view name) {
  constexpr auto others = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"valkey", "redis"},
      {"valkeys", "rediss"},
      {"tcp", "redis"},
      {"http", "redis"},
      {"https", "rediss"},
      {"tls", "rediss"},
      {"sentinel", "redis-sentinel"},
      {"redis+sentinel", "redis-sentinel"},
      {"cluster", "redis-cluster"},
  });
  if (quoted(name))
    return "write the URL without quotes";
  for (const auto& [other, ours] : others) {
    if (other == name)
      return fmt::format("write {}://", ours);
  }
  return known_schemes();
}

constexpr std::string_view how_to_name_several =
    "each independent server has a URL of its own: repeat --redis, or in a file the line `redis =`, or separate the "
    "URLs in RLOCK_REDIS with spaces";

/// Reads the parts of one URL from left to right; every error names the URL.
class Parser {
 public:
  explicit Parser(std::string_view url) : rest_(url) {
    address_.url = mask_password(url);
    mask_bare_user(address_.url);
    address_.bare_url = strip_password(url);
  }

  Address parse() {
    if (std::any_of(rest_.begin(), rest_.end(), [](unsigned char c) { return c <= ' ' || c == 0x7F; })) {
      fail(rest_.find("://") != rest_.rfind("://")
               ? how_to_name_several
               : "contains a space or control character; percent-encode it (%20 is a space)");
    }
    const auto colon = rest_.find("://");
    if (colon == std::string_view::npos)
      fail_without_scheme();
    const std::string_view name = rest_.substr(0, colon);
    rest_.remove_prefix(colon + 3);
    if (lower(name) == "unix") {
      parse_unix();
      return std::move(address_);
    }
    const Scheme* scheme = find_scheme(name);
    if (scheme == nullptr)
      fail(fmt::format("unknown scheme '{}'; {}", name, advise_scheme(name)));
    address_.kind = scheme->kind;
    if (scheme->tls)
      address_.tls.emplace();
    parse_network();
    return std::move(address_);
  }

 private:
  [[noreturn]] void fail(std::string_view reason) const {
    std::string why{reason};
    mask_parameters(why);
    throw Error{ExitCode::usage, fmt::format("{}: {}", address_.url.empty() ? "empty Redis URL" : address_.url, why)};
  }

  [[noreturn]] void fail_without_scheme() {
    std::string advice = guess_url(rest_);
    const std::string_view host = rest_.substr(0, rest_.find_first_of("/?"));
    if (!host.ends_with(':') && looks_like_a_password(host)) {
      address_.url = std::string{host.substr(0, host.find(':') + 1)} + "***";
      advice = guess_url("");
    }
    fail(fmt::format("no scheme; write {}", advice));
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
    if (query != std::string_view::npos) {
      const std::string_view name = name_of_parameter(rest_.substr(query + 1));
      fail(fmt::format("unknown query parameter '{}'{}", name, name == "db" ? "; write /DB behind the host" : ""));
    }
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
      fail(fmt::format("name one host only; {}", how_to_name_several));
    for (bool more = true; more;) {
      const auto comma = hosts.find(',');
      more = comma != std::string_view::npos;
      parse_host(hosts.substr(0, comma), sentinel ? sentinel_port : redis_port);
      hosts.remove_prefix(more ? comma + 1 : hosts.size());
    }
  }

  void parse_host(std::string_view host, std::uint16_t default_port) {
    if (host.empty() || (host[0] == ':' && !host.starts_with("::")))
      fail(fmt::format("no host{}", rest_.starts_with('/') ? "; write unix:///PATH for a socket" : ""));
    const auto endpoint = parse_endpoint(host, default_port);
    if (!endpoint)
      fail(fmt::format("bad host or port '{}'; write HOST[:PORT], with an IPv6 address in brackets",
                       looks_like_a_password(host) ? "***" : host));
    address_.endpoints.push_back(*endpoint);
    address_.endpoints.back().host = decoded(endpoint->host, "host");
  }

  /// Takes "master-name" off the front of the path, which may end with the database.
  void parse_master_name(std::string_view& path) {
    address_.master_name = decoded(take_word(path, '/'), "master name");
    if (address_.master_name.empty())
      fail("no master name; write redis-sentinel://HOST[:PORT]/MASTER-NAME");
    address_.must_be_master = true;
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
      fail(fmt::format("unknown query parameter '{}'", name_of_parameter(query)));
    parse_database(query.substr(3));
  }

  std::string_view rest_;
  Address address_;
};

}  // namespace

std::optional<std::string> Credentials::current_password() const {
  if (password_file.empty())
    return password;
  const auto fail = [this](std::string_view why) {
    return Error{ExitCode::config, fmt::format("password file {}: {}", password_file, why)};
  };
  const Fd fd = open_trusted(password_file, "password file " + password_file);
  if (!fd)
    throw fail(::strerror(errno));
  std::array<char, 4096> buffer;
  const auto read = read_line(fd, buffer);
  if (!read)
    throw fail(::strerror(errno));
  std::string_view line = *read;
  if (line.size() == buffer.size())
    throw fail("its first line is too long for a password");
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  if (line.empty())
    throw fail("its first line is empty");
  if (line.find('\0') != std::string_view::npos)
    throw fail("it is not a text file");
  return std::string{line};
}

std::string mask_password(std::string_view url) {
  // The password first: a parameter's value reaches to the end, and would hide the '@' that ends the password.
  std::string masked = replace_password(url, "***");
  mask_parameters(masked);
  mask_stray_password(masked);
  return masked;
}

std::string strip_password(std::string_view url) {
  std::string out{url};
  if (const auto span = find_password(url)) {
    const std::size_t separators = span->without_user ? 2 : 1;  // its ':', and the '@' if no user stands before it
    out.erase(span->begin - 1, span->end - span->begin + separators);
  }
  // A '?' in a user name begins no parameters. An '@' in the path of a socket ends no user name.
  const auto at = names_socket(url) ? std::string::npos : out.rfind('@');
  if (const auto query = out.find('?', at == std::string::npos ? 0 : at); query != std::string::npos) {
    std::string parameters = out.substr(query);
    mask_parameters(parameters);
    out.replace(query, std::string::npos, parameters);
  }
  return out;
}

void blot_password(std::span<char> url) {
  if (const auto span = find_password({url.data(), url.size()}))
    std::fill(url.begin() + static_cast<std::ptrdiff_t>(span->begin),
              url.begin() + static_cast<std::ptrdiff_t>(span->end),
              '*');
}

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
  Endpoint endpoint{.port = default_port};
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
