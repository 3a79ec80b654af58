#include "lock/name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace rlock::lock {
namespace {

constexpr std::size_t longest_name = 512;
constexpr std::array<std::string_view, 4> companions{":queue", ":waiters", ":meta", ":history"};

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw Error{ExitCode::usage, fmt::format("--key '{}': {}", name, why)};
}

bool ends_like_companion(std::string_view key) {
  return std::any_of(companions.begin(), companions.end(), [&](auto suffix) { return key.ends_with(suffix); });
}

/// Whether the key has one non-empty {tag}; throws for any other use of braces.
bool has_tag(std::string_view key, std::string_view name) {
  const auto open = key.find('{');
  const auto close = key.find('}');
  if (open == std::string_view::npos && close == std::string_view::npos)
    return false;
  const bool one = open != std::string_view::npos && close != std::string_view::npos && close > open + 1 &&
                   key.find('{', open + 1) == std::string_view::npos &&
                   key.find('}', close + 1) == std::string_view::npos;
  if (!one)
    refuse(name, "braces may only stand around one non-empty {tag}");
  if (ends_like_companion(key))
    refuse(name, "with a {tag} it may not end in :queue, :waiters, :meta or :history");
  return true;
}

}  // namespace

LockName::LockName(std::string_view prefix, std::string_view name)
    : name_(name), key_(std::string{prefix} + std::string{name}) {
  if (name.empty())
    throw Error{ExitCode::usage, "--key is empty"};
  if (name.size() > longest_name) {
    throw Error{ExitCode::usage,
                fmt::format("--key is {} bytes long; at most {} are allowed", name.size(), longest_name)};
  }
  if (name.find('\n') != std::string_view::npos)
    refuse(name, "it contains a newline");
  base_ = has_tag(key_, name) ? key_ : "{" + key_ + "}";
}

std::vector<std::string> LockName::keys() const {
  return {key_, base_ + ":queue", base_ + ":waiters", base_ + ":meta", base_ + ":history"};
}

bool is_companion_key(std::string_view key) {
  return key.find('{') != std::string_view::npos && ends_like_companion(key);
}

}  // namespace rlock::lock
