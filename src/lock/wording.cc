#include "lock/wording.h"

#include <fmt/format.h>

#include "base/error.h"

namespace rlock::lock {
namespace {

std::string describe(Capacity capacity) {
  if (capacity == shared)
    return "shared";
  if (capacity == exclusive)
    return "exclusive";
  return fmt::format("with --slots {}", capacity.value);
}

}  // namespace

std::string describe(const Owner& owner) {
  const std::string command = owner.command.empty() ? "" : fmt::format(" \"{}\"", owner.command);
  const std::string pid = owner.stays && owner.pid > 0 ? std::to_string(owner.pid) : "-";
  return fmt::format("{} pid {}{}", owner.holder, pid, command);
}

std::string describe(const Eviction& eviction) {
  const bool is_replaced = eviction.kind == Eviction::Kind::replaced;
  return fmt::format("{} by {}", is_replaced ? "replaced" : "released by force", eviction.by);
}

std::string describe(const Busy& busy, Capacity wanted) {
  if (busy.cooling.count() > 0) {
    return fmt::format("cooling for {} after {}", format_duration(busy.cooling), busy.holder.holder);
  }
  const bool differs = busy.in_force != wanted && (busy.in_force.value > 1 || wanted.value > 1);
  return fmt::format("held {}by {}{} for {}, lease {} left",
                     differs ? describe(busy.in_force) + " " : "",
                     describe(busy.holder),
                     busy.holder.note.empty() ? "" : fmt::format(" ({})", busy.holder.note),
                     format_duration(busy.held),
                     format_duration(busy.lease));
}

std::string describe(const Foreign& foreign) {
  const std::string value = foreign.type == "string" ? fmt::format(" \"{}\"", foreign.value) : "";
  const std::string end =
      foreign.expires_in ? fmt::format("{} left", format_duration(*foreign.expires_in)) : "never expires";
  return fmt::format("held by another program ({}{}), {}", foreign.type, value, end);
}

std::string describe(const Full& full) {
  return full.waiting == 1 ? "1 is waiting already" : fmt::format("{} are waiting already", full.waiting);
}

std::string describe(const Done& done, const std::optional<std::string>& id) {
  return fmt::format("{}done by {} {} ago", id ? *id + " " : "", done.by.holder, format_duration(done.ended_ago));
}

void refuse(const LockName& name, Capacity wanted, const Upgrade& upgrade) {
  throw Error{ExitCode::usage,
              fmt::format("{}: already held {} by this run; {} would wait for itself",
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

}  // namespace rlock::lock
