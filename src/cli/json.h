#pragma once

#include <string>
#include <vector>

#include "observe/facts.h"
#include "observe/history.h"

namespace rlock::cli {

/// One JSON array with every fact, on one line that ends with a newline.
std::string format_json(const std::vector<observe::LockFacts>& locks);
std::string format_json(const std::vector<observe::Run>& runs);

}  // namespace rlock::cli
