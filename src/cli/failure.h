#pragma once

#include <string_view>

#include "base/error.h"
#include "cli/settings.h"

namespace rlock::cli {

/// What Redis failed with, as somebody needs to hear it who was woken by it: which lock, where the address came from,
/// and what did not happen, "the command was not started". Other failures are left as they are.
Error explain(const Error& error, const Settings& settings, std::string_view undone);

/// Does it, and explains how it fails.
template <typename Action>
auto explaining(const Settings& settings, std::string_view undone, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    throw explain(error, settings, undone);
  }
}

}  // namespace rlock::cli
