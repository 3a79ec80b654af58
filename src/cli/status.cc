#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/screen.h"
#include "cli/session.h"
#include "cli/table.h"
#include "observe/survey.h"

namespace rlock::cli {
namespace {

using Locks = std::vector<observe::LockFacts>;

/// Without a prefix every key of the database is under it: of those that are not ours a list has locks of Redisson,
/// which can be told by their shape, and leaves the rest to those who name it.
bool is_no_lock(const observe::LockFacts& lock) {
  return lock.foreign && !(lock.foreign->type == "hash" && lock.foreign->value);
}

Locks look(Loop& loop, std::vector<redis::Server>& servers, const Settings& settings) {
  observe::Scope scope{.prefix = settings.prefix, .names = {}};
  for (const std::string& key : settings.keys) scope.names.emplace_back(settings.prefix, key);
  Locks locks = observe::survey(loop, servers, scope, settings.timeout);
  if (scope.names.empty() && scope.prefix.empty())
    std::erase_if(locks, is_no_lock);
  return locks;
}

std::string format(const Locks& locks, const Settings& settings, const Screen& screen) {
  return settings.json ? format_json(locks) : format_table(locks, screen);
}

/// Over what stood there before, without a flicker: each line's rest is cleared, and what is below the last. What does
/// not fit below is not shown: it would scroll the rest away.
std::string redraw(std::string_view text, const Screen& screen) {
  std::string out = "\x1b[H";
  for (std::size_t row = 1; !text.empty() && (screen.rows == 0 || row < screen.rows); ++row) {
    const auto end = text.find('\n');
    out += fmt::format("{}\x1b[K\n", text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return out + "\x1b[J";
}

/// Until a signal ends us. A server that fails later is shown as that: it may come back.
[[noreturn]] void watch(Loop& loop, std::vector<redis::Server>& servers, const Settings& settings) {
  std::string text;
  for (Deadline next = BootClock::now();; next += std::chrono::seconds{1}) {
    const Screen screen = Screen::now();
    try {
      text = format(look(loop, servers, settings), settings, screen);
    } catch (const Error& error) {
      if (text.empty() || error.code() != ExitCode::unavailable)
        throw;
      text = fmt::format("rlock: {}\n", printable(error.what()));
    }
    print(screen.is_terminal && !settings.json ? redraw(text, screen) : text);
    next = std::max(next, BootClock::now() - std::chrono::seconds{1});
    while (loop.wait(next + std::chrono::seconds{1}) != Loop::Wake::deadline) {
    }
  }
}

}  // namespace

int status(const Settings& settings) {
  const Log log{settings.verbosity};
  auto servers = choose_servers(settings, log, observe::listing_limits);
  Loop loop;
  if (settings.watch)
    watch(loop, servers, settings);
  const Locks locks = look(loop, servers, settings);
  print(format(locks, settings, Screen::now()));
  const bool some_free = std::any_of(
      locks.begin(), locks.end(), [](const observe::LockFacts& l) { return l.state == observe::State::free; });
  return static_cast<int>(!settings.keys.empty() && some_free ? ExitCode::not_holder : ExitCode::ok);
}

}  // namespace rlock::cli
