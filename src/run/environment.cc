#include "run/environment.h"

#include <fmt/format.h>

#include "base/escape.h"
#include "base/word.h"

namespace rlock::run {

std::string lock_variables(const Plan& plan, const lock::Granted& grant) {
  const std::string& token = plan.claim.token.text();
  std::string out;
  const auto add = [&out](std::string_view name, std::string_view value) {
    out += fmt::format("{}={}", name, value);
    out += '\0';
  };
  add("RLOCK_KEY", plan.name.text());
  add("RLOCK_TOKEN", token);
  add("RLOCK_FENCE", grant.fence.text());
  add("RLOCK_TTL_MS", std::to_string(plan.lease.ttl.count()));
  if (plan.claim.capacity.value > 1)
    add("RLOCK_SLOT", std::to_string(grant.slot));
  add("RLOCK_HELD", fmt::format("{}={}", percent_encode(plan.name.text()), token));
  return out;
}

std::vector<std::string> merge_environment(std::vector<std::string> environment, std::string_view additions) {
  while (!additions.empty()) {
    std::string entry{take_word(additions, '\0')};
    const std::string name = entry.substr(0, entry.find('=') + 1);
    std::erase_if(environment, [&](const std::string& old) {
      if (!old.starts_with(name))
        return false;
      if (name == "RLOCK_HELD=")
        entry += " " + old.substr(name.size());
      return true;
    });
    environment.push_back(std::move(entry));
  }
  return environment;
}

}  // namespace rlock::run
