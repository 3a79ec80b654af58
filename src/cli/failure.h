#pragma once

#include <string_view>

#include "base/error.h"
#include "cli/settings.h"

namespace rlock::cli {

/// Completes a failure of Redis with what the reader of the message needs to know: which lock, where the address came
/// from, and what was not done, such as "the command was not started". Other failures are left as they are.
Error explain(const Error& error, const Settings& settings, std::string_view undone);

/// Calls the action, and explains its failure.
template <typename Action>
auto explaining(const Settings& settings, std::string_view undone, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    throw explain(error, settings, undone);
  }
}

}  // namespace rlock::cli
