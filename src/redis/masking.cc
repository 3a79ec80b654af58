#include "redis/masking.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace rlock::redis {
namespace {

/// Where in a URL its password stands: between the first ':' and the last '@' of "//user:pass@host".
struct Span {
  std::size_t begin, end;
  bool without_user;
};

std::optional<Span> find_password(std::string_view url) {
  const auto slashes = url.find("://");
  const auto start = slashes == std::string_view::npos ? 0 : slashes + 3;
  // A password may contain an unencoded '/' or '?', so the last '@' of all counts, lest a part of it be shown. In the
  // path of a socket an '@' means nothing.
  const bool is_unix = url.starts_with("unix:");
  const auto at = is_unix ? url.substr(0, url.find('/', start)).rfind('@') : url.rfind('@');
  const auto colon = url.find(':', start);
  if (at == std::string_view::npos || at < start || colon > at)
    return std::nullopt;
  return Span{.begin = colon + 1, .end = at, .without_user = colon == start};
}

bool is_name_sign(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; }

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

std::string replace_password(std::string_view url, std::string_view with) {
  std::string out{url};
  if (const auto span = find_password(url))
    out.replace(span->begin, span->end - span->begin, with);
  return out;
}

}  // namespace

void mask_parameters(std::string& text) {
  for (auto equals = text.find('='); equals != std::string::npos; equals = text.find('=', equals + 1)) {
    auto begin = equals;
    while (begin > 0 && is_name_sign(text[begin - 1])) --begin;
    const std::string_view name = std::string_view{text}.substr(begin, equals - begin);
    if (name.find("pass") == std::string_view::npos && name.find("auth") == std::string_view::npos)
      continue;
    const auto end = std::min(text.find('&', equals), text.size());
    text.replace(equals + 1, end - equals - 1, "***");
  }
}

bool looks_like_a_password(std::string_view host) {
  const auto colon = host.find(':');
  if (colon == std::string_view::npos || host.starts_with('['))
    return false;
  const std::string_view name = host.substr(0, colon);
  const bool is_port = host.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  return !is_port && name != "localhost" && name.find('.') == std::string_view::npos;
}

std::string mask_password(std::string_view url) {
  std::string masked{url};
  mask_parameters(masked);
  masked = replace_password(masked, "***");
  mask_stray_password(masked);
  return masked;
}

std::string strip_password(std::string_view url) {
  std::string out{url};
  if (const auto span = find_password(url)) {
    const std::size_t signs = span->without_user ? 2 : 1;  // its ':', and the '@' where no user stands before it
    out.erase(span->begin - 1, span->end - span->begin + signs);
  }
  mask_parameters(out);
  return out;
}

void blot_password(std::span<char> url) {
  if (const auto span = find_password({url.data(), url.size()}))
    std::fill(url.begin() + static_cast<std::ptrdiff_t>(span->begin),
              url.begin() + static_cast<std::ptrdiff_t>(span->end),
              '*');
}

}  // namespace rlock::redis
