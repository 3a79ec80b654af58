#include "redis/address.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/escape.h"

namespace rlock::redis {
namespace {

/// Where in a URL its password stands: between the first ':' and the last '@' of "//user:pass@host".
struct Span {
  std::size_t begin, end;
};

std::optional<Span> find_password(std::string_view url) {
  const auto slashes = url.find("://");
  const auto start = slashes == std::string_view::npos ? 0 : slashes + 3;
  // A '/' or '?' may stand unencoded in a password: take the last '@' of all rather than show a part of it.
  const auto at = url.rfind('@');
  const auto colon = url.find(':', start);
  if (at == std::string_view::npos || at < start || colon > at) return std::nullopt;
  return Span{colon + 1, at};
}

/// Reads the parts of one URL from left to right; every error names the URL.
class Parser {
 public:
  explicit Parser(std::string_view url) : rest_(url) {
    address_.url = mask_password(url);
    address_.bare_url = strip_password(url);
  }

  Address parse() {
    if (std::any_of(rest_.begin(), rest_.end(), [](unsigned char c) { return c <= ' ' || c == 0x7F; })) {
      fail("a space or control character; write %20");
    }
    const auto colon = rest_.find("://");
    if (colon == std::string_view::npos) fail("no scheme; write redis://HOST[:PORT][/DB]");
    const std::string_view scheme = rest_.substr(0, colon);
    rest_.remove_prefix(colon + 3);
    if (scheme == "redis") {
      parse_tcp();
    } else if (scheme == "unix") {
      parse_unix();
    } else {
      fail(fmt::format("unknown scheme '{}'", scheme));
    }
    return std::move(address_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error{ExitCode::usage, fmt::format("{}: {}", address_.url.empty() ? "empty Redis URL" : address_.url, why)};
  }

  std::string decoded(std::string_view text, std::string_view part) const {
    auto plain = percent_decode(text);
    if (!plain) fail(fmt::format("bad percent-encoding in the {}", part));
    return *std::move(plain);
  }

  /// A decimal number in [low, high]; nothing else around it.
  int number(std::string_view text, int low, int high, std::string_view part) const {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
      fail(fmt::format("bad {} '{}'", part, text));
    }
    return value;
  }

  void parse_tcp() {
    const auto slash = rest_.find('/', rest_.rfind('@') == std::string_view::npos ? 0 : rest_.rfind('@'));
    std::string_view authority = rest_.substr(0, slash);
    std::string_view path = slash == std::string_view::npos ? "" : rest_.substr(slash + 1);
    reject_query(authority);
    reject_query(path);
    parse_user(authority);
    parse_host(authority);
    if (!path.empty()) address_.database = number(path, 0, 1'000'000, "database number");
  }

  void reject_query(std::string_view part) const {
    const auto mark = part.find_first_of("?#");
    if (mark != std::string_view::npos) fail(fmt::format("unknown query parameter '{}'", part.substr(mark + 1)));
  }

  /// Takes "user[:pass]@" off the front.
  void parse_user(std::string_view& authority) {
    const auto at = authority.rfind('@');
    if (at == std::string_view::npos) return;
    const std::string_view user = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    const auto colon = user.find(':');
    address_.credentials.user = decoded(user.substr(0, colon), "user name");
    if (colon != std::string_view::npos) address_.credentials.password = decoded(user.substr(colon + 1), "password");
  }

  void parse_host(std::string_view host) {
    std::string_view port;
    if (host.starts_with('[')) {
      const auto close = host.find(']');
      if (close == std::string_view::npos) fail("no ']' after the IPv6 address");
      address_.endpoint.host = host.substr(1, close - 1);
      port = host.substr(close + 1);
    } else {
      const auto colon = host.find(':');
      address_.endpoint.host = decoded(host.substr(0, colon), "host");
      if (colon != std::string_view::npos) port = host.substr(colon);
    }
    if (address_.endpoint.host.empty()) fail("no host");
    if (port.empty()) return;
    if (port[0] != ':' || port.find(':', 1) != std::string_view::npos) fail("write an IPv6 address in brackets");
    address_.endpoint.port = static_cast<std::uint16_t>(number(port.substr(1), 1, 65535, "port"));
  }

  void parse_unix() {
    const auto mark = rest_.find('?');
    address_.endpoint.path = decoded(rest_.substr(0, mark), "path");
    if (!address_.endpoint.path.starts_with('/')) fail("write the absolute path of the socket: unix:///PATH");
    if (address_.endpoint.path.size() >= sizeof sockaddr_un::sun_path) fail("the path of the socket is too long");
    if (mark == std::string_view::npos) return;
    const std::string_view query = rest_.substr(mark + 1);
    if (!query.starts_with("db=")) fail(fmt::format("unknown query parameter '{}'", query.substr(0, query.find('='))));
    address_.database = number(query.substr(3), 0, 1'000'000, "database number");
  }

  std::string_view rest_;
  Address address_;
};

std::string replace_password(std::string_view url, std::string_view with) {
  std::string out{url};
  if (const auto span = find_password(url)) out.replace(span->begin, span->end - span->begin, with);
  return out;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return endpoint.path;
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", endpoint.host, v6 ? "]" : "", endpoint.port);
}

Address parse_address(std::string_view url) { return Parser{url}.parse(); }

std::string mask_password(std::string_view url) { return replace_password(url, "***"); }

std::string strip_password(std::string_view url) {
  auto span = find_password(url);
  if (!span) return std::string{url};
  std::string out{url};
  out.erase(span->begin - 1, span->end - span->begin + 1);  // with its ':'
  return out;
}

}  // namespace rlock::redis
