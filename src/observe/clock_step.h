#pragma once

#include <optional>
#include <string>

#include "base/duration.h"
#include "base/loop.h"
#include "redis/server.h"

namespace rlock::observe {

/// How far the server's clock is behind what its locks remember: it was set back. Looks at a few hundred of them.
/// Nothing where it is not behind, or where nobody may look.
std::optional<Milliseconds> find_clock_step(Loop& loop,
                                            redis::Server& server,
                                            const std::string& prefix,
                                            Milliseconds timeout);

}  // namespace rlock::observe
