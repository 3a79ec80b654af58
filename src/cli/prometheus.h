#pragma once

#include <string>
#include <vector>

#include "observe/facts.h"

namespace rlock::cli {

/// The text exposition format of Prometheus, version 0.0.4: what node_exporter's textfile collector reads.
std::string format_prometheus(const std::vector<observe::LockFacts>& locks);

}  // namespace rlock::cli
