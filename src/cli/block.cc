#include "cli/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/columns.h"
#include "base/duration.h"
#include "base/escape.h"
#include "cli/failure.h"
#include "lock/wording.h"

namespace rlock::cli {
namespace {

using observe::HolderFacts;
using observe::LockFacts;
using observe::State;

/// A lock that is "not free" is held, cools or is on hold: of the last skip it is known which.
std::string describe_skip(std::string reason) {
  const auto* const known = std::find_if(observe::skip_reasons.begin(),
                                         observe::skip_reasons.end(),
                                         [&](const observe::SkipReason& r) { return r.name == reason; });
  if (known != observe::skip_reasons.end() && reason != "held")
    return std::string{known->words};
  std::replace(reason.begin(), reason.end(), '_', ' ');
  return "not free: " + reason;
}

/// "15 times (3 not free, 12 already done); the last: root@db1 3h ago (not free: on hold)"; empty where there was none.
std::string describe_skips(const observe::Counters& counters, WallTime now) {
  std::string reasons;
  long long all = 0;
  for (std::size_t i = 0; i < counters.skipped.size(); ++i) {
    const long long count = counters.skipped.at(i);
    all += count;
    if (count > 0)
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", count, observe::skip_reasons.at(i).words);
  }
  if (all == 0)
    return "";
  std::string text = fmt::format("{} ({})", all == 1 ? "once" : fmt::format("{} times", all), reasons);
  if (const auto& last = counters.last_skip)
    text += fmt::format(
        "; the last: {} {} ({})", last->holder, observe::format_ago(last->at, now), describe_skip(last->reason));
  return text;
}

/// "taken 12 times, 3 of them after a wait; 1 evicted, 2 failed, 1 of them lost".
std::string describe_runs(const observe::Counters& counters) {
  if (counters.acquired == 0)
    return "never taken";
  std::string text = counters.acquired == 1 ? "taken once" : fmt::format("taken {} times", counters.acquired);
  if (counters.waited > 0)
    text += counters.acquired == 1 ? ", after a wait" : fmt::format(", {} of them after a wait", counters.waited);
  std::string_view separator = "; ";
  for (const auto& [count, what] : {std::pair{counters.evicted, "evicted"}, {counters.failed, "failed"}}) {
    if (count > 0)
      text += fmt::format("{}{} {}", std::exchange(separator, ", "), count, what);
  }
  if (counters.lost > 0)  // it has failed, too, if it was not told to stop meanwhile
    text += fmt::format("{}{}{} lost", separator, counters.lost, counters.lost <= counters.failed ? " of them" : "");
  return text;
}

/// The lines of one lock.
class Block {
 public:
  Block(const LockFacts& lock, const Settings& settings, const Screen& screen, std::size_t most_waiters)
      : lock_(lock), settings_(settings), screen_(screen), most_waiters_(most_waiters) {}

  std::string text() {
    add_state();
    for (const HolderFacts& holder : lock_.holders) add_holder(holder);
    if (lock_.foreign)
      add("type", observe::describe(*lock_.foreign));
    add_waiters();
    if (lock_.last)
      add_end("last", *lock_.last);
    if (lock_.success)
      add_end("success", *lock_.success);
    add("failing", describe_failures());
    if (lock_.hold)
      add("hold", fmt::format("{}, since {}", lock::describe_end(lock_.hold->hold), format_local(lock_.hold->since)));
    add("counters", describe_runs(lock_.counters));
    add("skipped", describe_skips(lock_.counters, lock_.now));
    for (const observe::ServerFacts& server : lock_.servers)
      add("server", fmt::format("{} {}", server.url, server.state ? state_name(*server.state) : "no answer"));
    add_way_to_break();
    return std::move(out_);
  }

 private:
  /// A value that is too long for the screen goes on below itself, since a block is to tell all.
  void add(std::string_view name, std::string_view value) { add_rows(name, printable(value), false); }

  /// A command that goes on in the next row can be pasted all the same.
  void add_command(std::string_view name, std::string_view command) { add_rows(name, printable(command), true); }

  void add_rows(std::string_view name, std::string_view value, bool is_command) {
    constexpr std::size_t indent = 12;
    const std::size_t columns = screen_.columns == 0 ? indent + value.size() : std::max(screen_.columns, 2 * indent);
    while (!value.empty()) {
      const bool fits = indent + count_columns(value) <= columns;
      const std::size_t room = columns - indent - (is_command && !fits ? 2 : 0);
      const std::string_view row = take_row(value, room, is_command ? " --" : " ");
      out_ += fmt::format("{:>10}  {}{}\n", std::exchange(name, {}), row, is_command && !value.empty() ? " \\" : "");
    }
  }

  void add_state() {
    std::string text{state_name(lock_.state)};
    if (lock_.capacity == lock::shared) {
      text += " by readers";
    } else if (lock_.capacity && lock_.capacity->value > 1) {
      text += fmt::format(", {} slots", lock_.capacity->value);
    }
    if (lock_.foreign && lock_.foreign->expires_in)
      text += fmt::format(", {} left", format_duration(*lock_.foreign->expires_in));
    else if (lock_.foreign)
      text += ", never expires";
    if (lock_.hold)
      text += ", on hold";
    if (has_dead_holder())
      text += lock_.holders.size() == 1 ? ", but the holder has died" : ", but not all holders live";
    if (observe::is_unheard_of(lock_))
      text += fmt::format("; {}", unheard_of);
    const std::string line = fmt::format("{}  {}", printable(lock_.name), text);
    std::string_view rest = line;
    while (!rest.empty()) {
      const std::string_view row = take_row(rest, screen_.columns == 0 ? line.size() : screen_.columns);
      out_ +=
          screen_.colour ? fmt::format("{}{}{}\n", colour_of_state(), row, colour::plain) : fmt::format("{}\n", row);
    }
  }

  /// Of one failure `last` tells more, unless it was the only attempt.
  std::string describe_failures() const {
    const long long count = lock_.counters.failing;
    const auto& skip = lock_.counters.last_skip;
    const bool is_given_up = skip && skip->reason == "attempts" && lock_.last && skip->at >= lock_.last->ended_at;
    if (count == 0 || (count == 1 && !is_given_up))
      return "";
    return fmt::format("{}{}",
                       count == 1 ? "1 run" : fmt::format("{} runs in a row", count),
                       is_given_up ? "; a run without --attempts makes one more" : "");
  }

  bool has_dead_holder() const {
    const auto is_dead = [](const HolderFacts& h) { return h.dead && h.holds(); };
    return std::any_of(lock_.holders.begin(), lock_.holders.end(), is_dead);
  }

  /// As in the table of all locks.
  std::string_view colour_of_state() const {
    if (has_dead_holder())
      return colour::red;
    if (lock_.state == State::held)
      return colour::green;
    return lock_.state == State::free && !lock_.hold ? colour::dim : colour::yellow;
  }

  void add_holder(const HolderFacts& h) {
    add("holder", h.owner.holder);
    add("process", describe_process(h));
    add("command", h.owner.command);
    add("note", h.owner.note);
    add("fence", std::to_string(h.fence.value));
    if (lock_.capacity && lock_.capacity->value > 1)
      add("slot", std::to_string(h.slot));
    add("held",
        fmt::format("{} {} {}, {}",
                    format_duration(h.held),
                    h.cools() ? "from" : "since",
                    format_local(h.acquired_at),
                    h.waited.count() == 0 ? "granted at once" : "after a wait of " + format_duration(h.waited)));
    if (h.cools())
      add("cooling",
          fmt::format("for {} more{}",
                      format_duration(h.cooling),
                      h.failures ? fmt::format(" after {} (--backoff)", lock::describe(*h.failures, h.owner.host))
                                 : " (--min-hold)"));
    else
      add("lease", fmt::format("{} left", format_duration(h.lease)));
    if (h.evicted)
      add("evicted", fmt::format("by {}, not gone yet", h.evicted->by));
    if (lock_.holders.size() > 1)
      add_command("break", command_to_break(settings_, lock_.name, h.fence));
  }

  std::string break_all() const { return fmt::format("rlock release {} --force", lock_words(settings_, lock_.name)); }

  static std::string describe_process(const HolderFacts& h) {
    const std::string where = fmt::format("as {} on {}", h.owner.user, h.owner.host);
    if (h.cools())
      return fmt::format("none any more: it ran {}, and has ended", where);
    if (h.dead)
      return fmt::format("none any more: it ran {}, and has died; the lease runs out", where);
    if (h.has_left())
      return fmt::format("none: taken {}; a run inside it goes on, and renews it", where);
    return h.pid() ? fmt::format("pid {} {}", *h.pid(), where) : fmt::format("none: nobody renews it; taken {}", where);
  }

  void add_waiters() {
    if (lock_.waiting == 0)
      return;
    add("waiting", fmt::format("{}{}", lock_.waiting, lock_.hold ? ", until the hold has ended" : ""));
    std::size_t position = 0;
    for (const observe::WaiterFacts& w : lock_.waiters) {
      if (position == most_waiters_) {
        add("...", fmt::format("and {} more", lock_.waiters.size() - position));
        break;
      }
      const std::string command = w.owner.command.empty() ? "" : fmt::format(" \"{}\"", w.owner.command);
      add(fmt::format("{}.", ++position),
          fmt::format("{} pid {} on {} for {}{}{}{}",
                      w.owner.holder,
                      w.owner.pid,
                      w.owner.host,
                      format_duration(w.waiting),
                      w.first ? ", --first" : "",
                      command,
                      w.owner.remark()));
    }
  }

  void add_end(std::string_view name, const observe::Run& run) {
    const std::string id = run.once.empty() ? "" : ", ID " + run.once;
    const std::string how = observe::describe_end(run, lock_.now);
    const std::string by = run.ending.by.empty() ? "" : " by " + run.ending.by;
    add(name, fmt::format("{}{}, {}, at {}{}", how, by, run.owner.holder, format_local(run.ended_at), id));
  }

  /// Of several holders each has a line of its own. A foreign key has no fence.
  void add_way_to_break() {
    if (lock_.hold)
      add_command("end hold", "rlock hold " + lock_words(settings_, lock_.name) + " --end");
    if (lock_.foreign) {
      add_command("break", break_all());
      add("", "deletes the key of the other program");
    }
    if (lock_.foreign || lock_.holders.empty())
      return;
    const bool several = lock_.holders.size() > 1;
    add_command(several ? "break all" : "break",
                several ? break_all() : command_to_break(settings_, lock_.name, lock_.holders[0].fence));
    if (!lock_.waiters.empty() && !lock_.hold)
      add("then", fmt::format("{} starts next, unless you add --hold 1h", lock_.waiters[0].owner.holder));
  }

  const LockFacts& lock_;
  const Settings& settings_;
  const Screen& screen_;
  std::size_t most_waiters_;
  std::string out_;
};

}  // namespace

std::string format_block(const LockFacts& lock, const Settings& settings, const Screen& screen) {
  const std::size_t waiters = lock.waiters.size();
  std::string text = Block{lock, settings, screen, waiters}.text();
  // A screen that --watch redraws cannot be scrolled, and what breaks the lock comes last, so waiters are left out.
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  const std::size_t room = screen.rows > 2 ? screen.rows - 2 : 0;  // below the header, and the last row stays empty
  if (!settings.watch || room == 0 || lines <= room || waiters == 0)
    return text;
  const std::size_t excess = lines - room + 1;  // a line says how many are left out
  return Block{lock, settings, screen, waiters > excess ? waiters - excess : 1}.text();
}

}  // namespace rlock::cli
