#pragma once

#include <string>
#include <vector>

#include "observe/facts.h"

namespace rlock::cli {

/// Prometheus' text exposition format, version 0.0.4, which node_exporter's textfile collector reads.
std::string format_prometheus(const std::vector<observe::LockFacts>& locks);

}  // namespace rlock::cli
