#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/escape.h"
#include "base/loop.h"
#include "base/word.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/json.h"
#include "cli/prometheus.h"
#include "cli/scope.h"
#include "cli/screen.h"
#include "cli/servers.h"
#include "cli/table.h"
#include "observe/survey.h"

namespace rlock::cli {
namespace {

using Locks = std::vector<observe::LockFacts>;

/// With an empty prefix every key of the database is a candidate. Of other programs' keys the list shows only
/// Redisson's locks, which can be recognised by their structure; other keys must be named to be shown.
bool is_unrecognisable(const observe::LockFacts& lock) {
  return lock.foreign && !(lock.foreign->type == "hash" && lock.foreign->value);
}

/// A keeper on this machine that was killed no longer renews. On other machines we cannot tell.
void forget_killed_keepers(Locks& locks) {
  const std::string here = lock::host_name();
  for (observe::LockFacts& lock : locks) {
    for (observe::HolderFacts& holder : lock.holders) {
      const bool is_ours = holder.kept && holder.owner.pid > 0 && holder.owner.host == here;
      if (is_ours && ::kill(holder.owner.pid, 0) < 0 && errno == ESRCH)
        holder.kept = false;
    }
  }
}

Locks look(Loop& loop, std::vector<redis::Server>& servers, const Settings& settings) {
  observe::Scope scope = choose_scope(settings);
  scope.remembered = settings.prometheus;
  Locks locks = observe::survey(loop, servers, scope, settings.timeout);
  if (settings.keys.empty() && scope.prefix.empty())
    std::erase_if(locks, is_unrecognisable);
  forget_killed_keepers(locks);
  return locks;
}

std::string format(const Locks& locks, const Settings& settings, const Screen& screen) {
  if (settings.prometheus)
    return format_prometheus(locks);
  return settings.json ? format_json(locks) : format_table(locks, screen);
}

/// The servers and the time.
std::string watch_header(const std::vector<redis::Server>& servers) {
  std::string urls;
  for (const redis::Server& server : servers) urls += server.address().url + " ";
  return fmt::format("{} {}\n", printable(urls), format_local(wall_now()));
}

/// Cuts the text to the lines that there is room for; the last one says how many are missing.
std::string cut_to_rows(std::string_view text, std::size_t rows) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (rows == 0 || lines < rows)
    return std::string{text};
  const std::size_t shown = rows > 2 ? rows - 2 : 0;
  std::size_t end = 0;
  for (std::size_t i = 0; i < shown; ++i) end = text.find('\n', end) + 1;
  return fmt::format("{}... and {} rows that do not fit\n", text.substr(0, end), lines - shown);
}

/// Draws over the previous text without flicker: clears the rest of each line, and everything below the last.
std::string redraw(std::string_view text) {
  std::string out = "\x1b[H";
  while (!text.empty()) out += fmt::format("{}\x1b[K\n", take_word(text, '\n'));
  return out + "\x1b[J";
}

/// Runs until a signal ends us. If the server fails later on, the failure is shown, since the server may come back.
[[noreturn]] void watch(Loop& loop, std::vector<redis::Server>& servers, const Settings& settings) {
  constexpr std::chrono::seconds period{1};
  std::string text;
  for (Deadline due = BootClock::now();;) {
    const Screen screen = Screen::now();
    try {
      text = format(look(loop, servers, settings), settings, screen);
    } catch (const Error& error) {
      if (text.empty() || error.code() != ExitCode::unavailable)
        throw;
      text = fmt::format("rlock: {}\n", printable(error.what()));
    }
    if (!settings.json)
      text.insert(0, watch_header(servers));
    print(screen.is_terminal && !settings.json ? redraw(cut_to_rows(text, screen.rows)) : text);
    due = std::max(due + period, BootClock::now());  // a look that took too long does not make the later ones hurry
    loop.wait_out(due);
  }
}

/// Whether a named lock is free, or no lock matches the patterns.
bool is_any_free(const Locks& locks) {
  return locks.empty() || std::any_of(locks.begin(), locks.end(), [](const observe::LockFacts& lock) {
           return lock.state == observe::State::free;
         });
}

ExitCode look_and_print(const Settings& settings) {
  const Log log{settings.verbosity};
  auto servers = choose_servers(settings, log, observe::listing_limits);
  Loop loop;
  if (settings.watch)
    watch(loop, servers, settings);
  const Locks locks = look(loop, servers, settings);
  print(format(locks, settings, Screen::now()));
  return !settings.keys.empty() && is_any_free(locks) ? ExitCode::negative : ExitCode::ok;
}

}  // namespace

ExitCode status(const Settings& settings) {
  return explaining(settings, "it is not known who holds it", [&] { return look_and_print(settings); });
}

}  // namespace rlock::cli
