#include "lock/conflict.h"

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
  return fmt::format("{} pid {}{}", owner.holder, owner.pid, command);
}

std::string describe(const Busy& busy) {
  if (busy.cooling.count() > 0) {
    return fmt::format("cooling for {} after {}", format_duration(busy.cooling), busy.holder.holder);
  }
  return fmt::format("held by {} for {}, lease {} left",
                     describe(busy.holder),
                     format_duration(busy.held),
                     format_duration(busy.lease));
}

std::string describe(const Foreign& foreign) {
  const std::string value = foreign.type == "string" ? fmt::format(" \"{}\"", foreign.value) : "";
  const std::string end =
      foreign.expires_in ? fmt::format("{} left", format_duration(*foreign.expires_in)) : "never expires";
  return fmt::format("held by another program ({}{}), {}", foreign.type, value, end);
}

void refuse(const LockName& name, Capacity wanted, const Mismatch& mismatch) {
  throw Error{ExitCode::usage,
              fmt::format("{} is held {}, asked for {}: wait until it is free, or ask for the same",
                          name.text(),
                          describe(mismatch.in_force),
                          describe(wanted))};
}

void refuse(const LockName& name, const Upgrade&) {
  throw Error{ExitCode::usage,
              fmt::format("{}: already held shared by this run; exclusive would wait for itself", name.text())};
}

}  // namespace rlock::lock
