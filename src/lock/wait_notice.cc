#include "lock/wait_notice.h"

#include <fmt/format.h>
#include <unistd.h>

namespace rlock::lock {
namespace {

constexpr std::chrono::seconds between_lines{10};
constexpr Milliseconds worth_telling{1000};

}  // namespace

void WaitNotice::waiting(const std::string& lock, const std::string& obstacle, long long place) {
  const auto now = BootClock::now();
  const bool moved = told_at_ && place != told_place_ && now >= *told_at_ + between_lines;
  if (told_at_ && !(moved && ::isatty(STDERR_FILENO) == 1))
    return;
  told_at_ = now;
  told_place_ = place;
  log_->notice(fmt::format(
      "waiting for {}, {}{}", lock, obstacle, place > 1 ? fmt::format("; place {} in the queue", place) : ""));
}

void WaitNotice::acquired(const std::string& lock, Milliseconds waited) const {
  if (told_at_ && waited >= worth_telling)
    log_->notice(fmt::format("{} acquired after {}", lock, format_duration(waited)));
}

}  // namespace rlock::lock
