#include "cli/not_held.h"

#include <fmt/format.h>

#include "base/error.h"
#include "lock/retry.h"
#include "lock/wording.h"

namespace rlock::cli {
namespace {

std::string describe_instead(Loop& loop, lock::Lock& lock, const lock::Token& token, Deadline deadline) {
  const lock::Forced found = lock.look(loop, deadline);
  if (std::holds_alternative<lock::ForeignKey>(found))
    return "another program's key is there";
  const auto& targets = std::get<std::vector<lock::Target>>(found);
  if (!targets.empty()) {
    const bool cooling = targets[0].state == lock::Target::State::cooling;
    return fmt::format("{} {} with fence {}",
                       cooling ? "cooling after" : "held by",
                       lock::describe(targets[0].owner),
                       targets[0].fence.value);
  }
  const bool was_released = lock.recall(loop, token, lock::Level::random(), deadline);
  return was_released ? "it was released already" : "it is free; the lease has ended, or its holder was evicted";
}

}  // namespace

ExitCode say_not_held(
    Loop& loop, lock::Lock& lock, const lock::Token& token, Milliseconds timeout, Deadline give_up, const Log& log) {
  std::string message = fmt::format("{} is not held by this token any more", lock.name().text());
  try {
    message += ": " + lock::persist(loop, lock, timeout, give_up, [&](Deadline deadline) {
                 return describe_instead(loop, lock, token, deadline);
               });
  } catch (const Error&) {
    // Only the explanation failed.
  }
  log.notice(message);
  return ExitCode::negative;
}

}  // namespace rlock::cli
