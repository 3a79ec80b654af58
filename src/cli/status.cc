#include <fmt/format.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/columns.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/loop.h"
#include "base/signals.h"
#include "base/word.h"
#include "cli/block.h"
#include "cli/claim.h"
#include "cli/failure.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/prometheus.h"
#include "cli/screen.h"
#include "cli/servers.h"
#include "cli/subcommand.h"
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

Locks look(std::vector<redis::Server>& servers, const Settings& settings) {
  observe::Scope scope = choose_scope(settings);
  scope.remembered = settings.prometheus || settings.all || !scope.patterns.empty();
  Locks locks = observe::survey(servers, scope, settings.timeout);
  if (settings.keys.empty() && scope.prefix.empty())
    std::erase_if(locks, is_unrecognisable);
  return locks;
}

/// Whether a person asks about one lock, and so wants to know everything about it.
bool wants_block(const Locks& locks, const Settings& settings, const Screen& screen) {
  return screen.is_terminal && settings.keys.size() == 1 && !is_pattern(settings, settings.keys[0]) &&
         locks.size() == 1;
}

std::string format(const Locks& locks, const Settings& settings, const Screen& screen) {
  if (settings.prometheus)
    return format_prometheus(locks);
  if (settings.json)
    return format_json(locks);
  return wants_block(locks, settings, screen) ? format_block(locks[0], settings, screen) : format_table(locks, screen);
}

/// The servers, of which the rest of a row must be enough, and the time. The last column stays empty, since a terminal
/// may erase it together with what follows the row.
std::string watch_header(const std::vector<redis::Server>& servers, bool has_keys, const Screen& screen) {
  std::string urls;
  for (const redis::Server& server : servers) urls += server.address().url + " ";
  urls = printable(urls);
  const std::string rest = fmt::format(" {}{}", format_local(wall_now()), has_keys ? "  (q quits)" : "");
  if (screen.columns == 0)
    return fmt::format("{}{}\n", urls, rest);
  const std::size_t width = screen.columns - 1;
  urls = width > rest.size() ? cut_to_columns(urls, width - rest.size(), screen.utf8) : "";
  return cut_to_columns(urls + rest, width, screen.utf8) + "\n";
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

/// Shows the locks again every second until `q` is typed or a signal comes. If the server fails later on, the failure
/// is shown, since the server may come back.
class Watch {
 public:
  Watch(std::vector<redis::Server>& servers, const Settings& settings, const Log& log)
      : loop_(servers.front().loop()),
        servers_(servers),
        settings_(settings),
        log_(log),
        signals_({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) {
    loop_.watch(signals_.fd(), [this] { on_signal(); });
  }

  /// Returns when `q` has been typed. A signal ends this process, so that a script that runs it stops, too.
  ExitCode run(const Locks& first) {
    take_screen();
    show(format(first, settings_, Screen::now()));
    for (Deadline due = BootClock::now(); !ended_;) {
      due = std::max(due + period, BootClock::now());  // a look that took too long does not make the later ones hurry
      while (!ended_ && loop_.wait(due) != Loop::Wake::deadline) {
      }
      if (!ended_)
        look_again();
    }
    give_screen_back();
    return *ended_;
  }

 private:
  static constexpr std::chrono::seconds period{1};

  bool has_keys() const { return full_ && full_->keys() >= 0; }

  void take_screen() {
    if (!Screen::now().obeys || settings_.json)
      return;
    wait_for_foreground();
    full_.emplace();
    if (has_keys())
      loop_.watch(full_->keys(), [this] { on_key(); });
  }

  void give_screen_back() {
    if (has_keys())
      loop_.unwatch(full_->keys());
    full_.reset();
  }

  void look_again() {
    try {
      show(format(look(servers_, settings_), settings_, Screen::now()));
      failing_ = false;
    } catch (const Error& error) {
      if (!may_be_mended(error))
        throw;
      const bool is_news = !std::exchange(failing_, true);
      if (!settings_.json)
        show(fmt::format("rlock: {}\n", printable(error.what())));
      else if (is_news)  // a program reads standard output
        log_.notice(fmt::format("{}; trying again", error.what()));
    }
  }

  void show(std::string text) const {
    const Screen screen = Screen::now();
    if (!settings_.json)
      text.insert(0, watch_header(servers_, has_keys(), screen));
    cli::show(screen.obeys && !settings_.json ? redraw(cut_to_rows(text, screen.rows)) : text);
  }

  void on_signal() {
    const auto signal = signals_.next();
    if (!signal)
      return;
    give_screen_back();
    if (signal->number == SIGTSTP) {
      ::raise(SIGTSTP);
      wait_for_foreground();
      take_screen();
    } else {
      raise_unblocked(signal->number);
      ended_ = killed_by(signal->number);  // process 1 of a container is not killed by its own signals
    }
  }

  /// Lets signals stop or end us at once, and does not return as long as another program has the terminal: the kernel
  /// stops whoever calls tcdrain(3) then, after `bg` again, except in an orphaned process group, where nobody could
  /// make us go on.
  static void wait_for_foreground() {
    const sigset_t signals = Signals::set_of({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTOU});
    ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
    ::tcdrain(STDOUT_FILENO);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  }

  void on_key() {
    char key = 0;
    const ssize_t count = ::read(full_->keys(), &key, 1);
    if (count == 1 && key == 'q')
      ended_ = ExitCode::ok;
    if (count <= 0)
      loop_.unwatch(full_->keys());
  }

  Loop& loop_;
  std::vector<redis::Server>& servers_;
  const Settings& settings_;
  const Log& log_;
  Signals signals_;
  std::optional<FullScreen> full_;
  bool failing_ = false;
  std::optional<ExitCode> ended_;
};

/// Whether a named lock is free, or no lock matches the patterns.
bool is_any_free(const Locks& locks) {
  return locks.empty() || std::any_of(locks.begin(), locks.end(), [](const observe::LockFacts& lock) {
           return lock.state == observe::State::free;
         });
}

/// A name that nobody has heard of may be mistyped, and so may a pattern that matches nothing.
void doubt_names(const Locks& locks, const Settings& settings, const Log& log) {
  for (const observe::LockFacts& lock : locks) {
    const bool is_named = std::find(settings.keys.begin(), settings.keys.end(), lock.name) != settings.keys.end();
    if (is_named && observe::is_unheard_of(lock))
      log.notice(fmt::format("{}: {}", lock.name, unheard_of));
  }
  for (const std::string& pattern : choose_scope(settings).patterns) {
    const observe::Scope matching{.prefix = settings.prefix, .patterns = {pattern}};
    if (std::none_of(locks.begin(), locks.end(), [&](const auto& lock) { return matching.includes(lock.name); }))
      log.notice(fmt::format("{}: no lock is known that matches; check the pattern", pattern));
  }
}

/// An empty table leaves a person without a clue: the server or the prefix may be another one than was meant.
void explain_emptiness(const std::vector<redis::Server>& servers, const Settings& settings, const Log& log) {
  const std::string where = fmt::format("under the prefix '{}' on {}{}",
                                        settings.prefix,
                                        servers.front().address().url,
                                        servers.size() > 1 ? " and the others" : "");
  log.notice(settings.all ? fmt::format("no lock is known {}", where)
                          : fmt::format("no lock is held {}; `rlock status --all` shows those that are free", where));
}

ExitCode look_and_print(const Settings& settings) {
  const Log log{settings.verbosity};
  Loop loop;
  auto servers = choose_servers(loop, settings, log, observe::listing_limits);
  const Locks locks = look(servers, settings);
  warn_of_replica(servers, settings, log);
  if (settings.watch)
    return Watch{servers, settings, log}.run(locks);
  const Screen screen = Screen::now();
  show(format(locks, settings, screen));
  if (!settings.json && !settings.prometheus && !wants_block(locks, settings, screen))
    doubt_names(locks, settings, log);
  if (screen.is_terminal && locks.empty() && settings.keys.empty() && !settings.json && !settings.prometheus)
    explain_emptiness(servers, settings, log);
  return !settings.keys.empty() && is_any_free(locks) ? ExitCode::negative : ExitCode::ok;
}

}  // namespace

ExitCode status(const Settings& settings) {
  return explaining(
      settings, settings.keys.empty() ? "" : "it is not known who holds it", [&] { return look_and_print(settings); });
}

}  // namespace rlock::cli
