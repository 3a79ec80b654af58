#pragma once

#include <string>

#include "cli/options.h"
#include "cli/screen.h"
#include "observe/facts.h"

namespace rlock::cli {

/// Everything about one lock, for a person at a terminal: a line for each fact, and the command that breaks the lock.
/// Everything untrusted is escaped, and no line is wider than the screen.
std::string format_block(const observe::LockFacts& lock, const Settings& settings, const Screen& screen);

}  // namespace rlock::cli
