#pragma once

#include <string>
#include <vector>

#include "observe/inspect.h"

namespace rlock::cli {

/// One JSON array on one line with every fact, ended by a newline.
std::string format_json(const std::vector<observe::LockFacts>& locks);

/// A JSON array of what `format` makes of each item.
template <typename Items, typename Format>
std::string json_array(const Items& items, Format format) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1)
      out += ',';
    out += format(item);
  }
  return out + "]";
}

/// "free", "held", "cooling" or "foreign".
std::string_view state_name(observe::State state);

}  // namespace rlock::cli
