#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "observe/fitness.h"

namespace rlock::observe {

/// Combines the findings about all nodes of a cluster. What holds for all nodes is said once, anything else with the
/// names of the nodes that it holds for.
class Summary {
 public:
  void add(std::string_view node, const std::vector<Finding>& findings);
  std::vector<Finding> findings() const;

 private:
  struct Line {
    Finding finding;
    std::vector<std::string> nodes;
  };

  Line& line_for(const Finding& finding);

  std::vector<Line> lines_;
  std::size_t nodes_ = 0;
};

}  // namespace rlock::observe
