#include "lock/wording.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/signals.h"
#include "base/word.h"

namespace rlock::lock {
namespace {

std::string describe(Capacity capacity) {
  if (capacity == shared)
    return "shared";
  if (capacity == exclusive)
    return "exclusive";
  return fmt::format("with --slots {}", capacity.value);
}

std::string describe(const Failures& failures, std::string_view one, std::string_view several, std::string_view host) {
  const auto status = parse_number(failures.end, 0, 255);
  constexpr std::string_view signal = "signal:";
  const auto number = failures.end.starts_with(signal)
                          ? parse_number(std::string_view{failures.end}.substr(signal.size()), 1, 127)
                          : std::nullopt;
  const std::string how = number ? signal_name(*number) : status ? fmt::format("exit {}", *status) : failures.end;
  return fmt::format("{} {}, last {} on {}", failures.count, failures.count == 1 ? one : several, how, host);
}

std::string describe_end(std::string_view until, const Owner& by) {
  return fmt::format("until {} by {}{}", until, by.holder, by.remark());
}

}  // namespace

std::string describe(const Owner& owner) {
  const std::string command = owner.command.empty() ? "" : fmt::format(" \"{}\"", owner.command);
  const std::string process = owner.stays && owner.pid > 0 ? fmt::format("pid {}", owner.pid) : "(no process)";
  return fmt::format("{} {}{}", owner.holder, process, command);
}

std::string describe(const Eviction& eviction) {
  const bool is_replaced = eviction.kind == Eviction::Kind::replaced;
  return fmt::format("{} by {}", is_replaced ? "replaced" : "evicted", eviction.by);
}

std::string describe(const Busy& busy, Capacity wanted) {
  if (busy.cooling.count() > 0)
    return fmt::format("cooling for {} after {}",
                       format_duration(busy.cooling),
                       busy.failures ? describe(*busy.failures, busy.holder.host) : busy.holder.holder);
  const bool differs =
      busy.in_force != wanted && (busy.in_force == shared || busy.in_force.value > 1 || wanted.value > 1);
  // Readers share the lock: only a writer who waits for it keeps one out.
  const bool is_behind = busy.in_force == shared && wanted == shared && busy.place == 0 && busy.waiting > 0;
  const bool is_dead = is_gone(busy.holder);
  const std::string left = format_duration(busy.lease);
  return fmt::format(
      "held {}by {}{}{} for {}{}{}",
      differs ? describe(busy.in_force) + " " : "",
      describe(busy.holder),
      !differs && busy.in_force.value > 1 ? fmt::format(" (one of {})", busy.in_force.value) : "",
      busy.holder.remark(),
      format_duration(busy.held),
      is_dead ? fmt::format(", but it has died; free in {}", left) : fmt::format(", lease {} left", left),
      is_behind ? ", and a writer waits" : "");
}

std::string describe(const Foreign& foreign) {
  const std::string end =
      foreign.expires_in ? fmt::format("{} left", format_duration(*foreign.expires_in)) : "never expires";
  return fmt::format("held by another program ({}), {}", describe_key(foreign.type, foreign.value), end);
}

std::string describe_key(std::string_view type, std::string_view value) {
  if (type != "string")
    return std::string{type};
  constexpr std::size_t fetched = 128;  // the scripts send no more of a value
  const std::string_view more = value.size() >= fetched ? " or more" : "";
  return fmt::format("{} of {} byte{}{}", type, value.size(), value.size() == 1 ? "" : "s", more);
}

std::string describe(const Full& full) {
  if (full.waiting == 0)
    return "nobody may wait (--max-waiting 0)";
  return full.waiting == 1 ? "1 is waiting already" : fmt::format("{} are waiting already", full.waiting);
}

std::string describe(const Done& done, const Claim& claim) {
  const std::string id = claim.once ? *claim.once + " was " : "";
  return fmt::format("{}done by {} {} ago",
                     claim.calendar_slot ? claim.calendar_slot->name + " " : id,
                     done.by.holder,
                     format_duration(done.ended_ago));
}

std::string describe(const Failures& failures, std::string_view host) {
  return describe(failures, "failure", "failures", host);
}

std::string describe(const Exhausted& exhausted) {
  return fmt::format("{} {} ago; a run without --attempts makes one more, after any cooling",
                     describe(exhausted.failures, "attempt failed", "attempts failed", exhausted.host),
                     format_duration(exhausted.ended_ago));
}

std::string describe_end(const Hold& hold) { return describe_end(format_to_come(hold.until), hold.by); }

std::string describe(const Hold& hold) { return "on hold " + describe_end(hold); }

std::string describe(const Hold& hold, WallTime now) {
  return "on hold " + describe_end(format_soon(hold.until, now), hold.by);
}

std::string key_word(std::string_view name) {
  return (name.starts_with('-') ? "--key=" : "") + visible_shell_word(name);
}

void refuse(const LockName& name, Capacity wanted, const Upgrade& upgrade) {
  throw Error{
      ExitCode::usage,
      fmt::format("{}: held {} by an enclosing run, which a run inside it cannot hold {}: give both the same option",
                  name.text(),
                  describe(upgrade.in_force),
                  describe(wanted))};
}

void refuse(const LockName& name, const OtherOnce& other) {
  throw Error{ExitCode::usage,
              fmt::format("{}: held by an enclosing run for --once {}; a run inside it cannot be for another ID",
                          name.text(),
                          other.id)};
}

Error interrupted(const LockName& name, int signal) {
  return {killed_by(signal), fmt::format("interrupted by {} before {} was acquired", signal_name(signal), name.text())};
}

}  // namespace rlock::lock
