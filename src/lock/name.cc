#include "lock/name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace rlock::lock {
namespace {

constexpr std::size_t longest_name = 512;
constexpr std::array<std::string_view, 6> companions{":queue", ":waiters", ":meta", ":history", ":hold", ":seats"};
constexpr std::string_view ended{":ended:"};

bool ends_like_companion(std::string_view key) {
  const auto at = key.rfind(ended);
  if (at != std::string_view::npos && key.find(':', at + ended.size()) == std::string_view::npos)
    return true;
  return std::any_of(companions.begin(), companions.end(), [&](auto suffix) { return key.ends_with(suffix); });
}

/// What is wrong with the braces in a key, which may only be those of one non-empty {tag}; nullptr if nothing is.
const char* fault_in_braces(std::string_view key) {
  const auto open = key.find('{');
  const auto close = key.find('}');
  if (open == std::string_view::npos && close == std::string_view::npos)
    return nullptr;
  const bool one = open != std::string_view::npos && close != std::string_view::npos && close > open + 1 &&
                   key.find('{', open + 1) == std::string_view::npos &&
                   key.find('}', close + 1) == std::string_view::npos;
  if (!one)
    return "braces may only stand around one non-empty {tag}";
  if (key.front() == '{' && key.back() == '}')
    return "without a prefix a {tag} may not be all of it, since the lock without the braces has the same other keys";
  return ends_like_companion(key)
             ? "with a {tag} it may not end in :queue, :waiters, :meta, :history, :hold, :seats or :ended:ID"
             : nullptr;
}

/// Names the prefix too where it has a part in the fault.
[[noreturn]] void refuse(std::string_view prefix,
                         std::string_view origin,
                         std::string_view name,
                         std::string_view why) {
  const bool has_part = prefix.find_first_of("{}") != std::string_view::npos;
  const std::string with = has_part ? fmt::format("the prefix '{}' and ", prefix) : "";
  throw Error{ExitCode::usage, fmt::format("{}{} '{}': {}", with, origin, name, why)};
}

}  // namespace

LockName::LockName(std::string_view prefix, std::string_view name, std::string_view origin)
    : name_(name), key_(std::string{prefix} + std::string{name}) {
  if (name.empty())
    throw Error{ExitCode::usage, fmt::format("{} is empty", origin)};
  if (name.size() > longest_name) {
    throw Error{ExitCode::usage,
                fmt::format("{} is {} bytes long; at most {} are allowed", origin, name.size(), longest_name)};
  }
  if (name.find('\n') != std::string_view::npos)
    refuse({}, origin, name, "it contains a newline");
  if (const char* fault = fault_in_braces(key_))
    refuse(prefix, origin, name, fault);
  base_ = key_.find('{') != std::string::npos ? key_ : "{" + key_ + "}";
}

std::vector<std::string> LockName::keys() const {
  return {key_, base_ + ":queue", base_ + ":waiters", base_ + ":meta", base_ + ":history", base_ + ":seats"};
}

std::string LockName::hold_mark() const { return base_ + ":hold"; }

std::vector<std::string> LockName::keys(std::string_view level, std::string_view token) const {
  std::vector<std::string> all = keys();
  for (const std::string_view id : {level, token}) all.push_back(base_ + std::string{ended} + std::string{id});
  return all;
}

bool is_companion_key(std::string_view key) {
  return key.find('{') != std::string_view::npos && ends_like_companion(key);
}

}  // namespace rlock::lock
