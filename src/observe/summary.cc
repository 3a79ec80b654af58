#include "observe/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rlock::observe {

void Summary::add(std::string_view node, const std::vector<Finding>& findings) {
  ++nodes_;
  for (const Finding& finding : findings) line_for(finding).nodes.emplace_back(node);
}

std::vector<Finding> Summary::findings() const {
  std::vector<Finding> all;
  for (const Line& line : lines_) {
    all.push_back(line.finding);
    if (line.nodes.size() < nodes_ && line.finding.topic != "reachable")  // its text names the node anyway
      all.back().text = fmt::format("{}: {}", fmt::join(line.nodes, ", "), line.finding.text);
  }
  return all;
}

/// Keeps the lines of one topic together.
Summary::Line& Summary::line_for(const Finding& finding) {
  auto place = lines_.end();
  for (auto line = lines_.begin(); line != lines_.end(); ++line) {
    if (line->finding == finding)
      return *line;
    if (line->finding.topic == finding.topic)
      place = line + 1;
  }
  return *lines_.insert(place, Line{.finding = finding, .nodes = {}});
}

}  // namespace rlock::observe
