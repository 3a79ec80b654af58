#pragma once

#include <optional>
#include <string>

#include "base/duration.h"
#include "base/loop.h"
#include "redis/server.h"

namespace rlock::observe {

/// How far the server's clock is behind the latest time that a sample of its locks has recorded, which means that it
/// was set back. Empty where it is less than a second behind, or where we may not read the locks.
std::optional<Milliseconds> find_clock_step(Loop& loop,
                                            redis::Server& server,
                                            const std::string& prefix,
                                            Milliseconds timeout);

}  // namespace rlock::observe
