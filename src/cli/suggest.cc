#include "cli/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace rlock::cli {
namespace {

/// How many letters must be inserted, deleted, changed or swapped with their neighbour to turn one word into the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), 0UL);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row{i};
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      std::size_t best = std::min({change, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, before_last[j - 2] + 1);
      row.push_back(best);
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates, std::string_view prefix) {
  constexpr std::size_t longest = 40;  // anything longer is not a mistyped word
  if (word.size() > longest)
    return {};
  const auto slips = [word](std::string_view candidate) {
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    return begins ? 1 : distance(word, candidate);
  };
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t count = slips(candidate);
    if (count < least && count < candidate.size()) {
      least = count;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : fmt::format("; did you mean {}{}?", prefix, nearest);
}

}  // namespace rlock::cli
