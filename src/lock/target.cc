#include "lock/target.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/number.h"
#include "base/word.h"

namespace rlock::lock {
namespace {

long long take_number(std::string_view& rest) { return parse_number(take_word(rest), 0LL, largest_whole).value_or(0); }

Target::State read_state(std::string_view word) {
  if (word == "cooling")
    return Target::State::cooling;
  if (word == "marked")
    return Target::State::marked;
  return word == "removed" ? Target::State::removed : Target::State::held;
}

}  // namespace

Target read_target(const std::string& line) {
  std::string_view rest = line;
  Target target;
  target.fence = {take_number(rest)};
  target.state = read_state(take_word(rest));
  target.lease = Milliseconds{take_number(rest)};
  target.kept = take_word(rest) == "1";
  target.owner = Owner::decode(rest);
  target.owner.stays = target.kept && target.state != Target::State::cooling;
  return target;
}

void add_target(std::vector<Target>& targets, Target target) {
  const auto same = [&target](const Target& other) { return other.fence == target.fence; };
  const auto known = std::find_if(targets.begin(), targets.end(), same);
  if (known == targets.end())
    targets.push_back(std::move(target));
  else if (known->state == Target::State::removed)
    *known = std::move(target);
}

}  // namespace rlock::lock
