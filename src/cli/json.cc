#include "cli/json.h"

#include <fmt/format.h>

#include "base/escape.h"

namespace rlock::cli {
namespace {

std::string_view mode_name(lock::Capacity capacity) {
  if (capacity == lock::shared)
    return "shared";
  return capacity == lock::exclusive ? "exclusive" : "slots";
}

template <typename Number>
std::string number_or_null(const std::optional<Number>& number) {
  return number ? fmt::format("{}", *number) : "null";
}

std::optional<long long> count(const std::optional<Milliseconds>& duration) {
  return duration ? std::optional{static_cast<long long>(duration->count())} : std::nullopt;
}

std::string format_holder(const observe::HolderFacts& h, bool slots) {
  return fmt::format(
      R"({{"holder":{},"host":{},"pid":{},"user":{},"command":{},"note":{},"acquired_at":"{}","held_ms":{},)"
      R"("lease_ms":{},"fence":{},"slot":{},"count":{}}})",
      json_string(h.owner.holder),
      json_string(h.owner.host),
      h.owner.pid,
      json_string(h.owner.user),
      json_string(h.owner.command),
      json_string(h.owner.note),
      format_utc(h.acquired_at),
      h.held.count(),
      h.lease.count(),
      h.fence.value,
      slots ? std::to_string(h.slot) : "null",
      h.levels);
}

std::string format_waiter(const observe::WaiterFacts& w, std::size_t position) {
  return fmt::format(R"({{"holder":{},"host":{},"pid":{},"position":{},"waiting_ms":{},"mode":"{}"}})",
                     json_string(w.owner.holder),
                     json_string(w.owner.host),
                     w.owner.pid,
                     position,
                     w.waiting.count(),
                     mode_name(w.wanted));
}

std::string format_last(const std::optional<observe::LastRun>& last) {
  if (!last)
    return "[]";
  return fmt::format(R"([{{"holder":{},"host":{},"pid":{},"command":{},"acquired_at":"{}","ended_at":"{}",)"
                     R"("held_ms":{},"exit_status":{}}}])",
                     json_string(last->owner.holder),
                     json_string(last->owner.host),
                     last->owner.pid,
                     json_string(last->owner.command),
                     format_utc(last->acquired_at),
                     format_utc(last->ended_at),
                     last->held.count(),
                     number_or_null(last->exit_status));
}

std::string format_foreign(const std::optional<observe::ForeignFacts>& foreign) {
  if (!foreign)
    return "null";
  return fmt::format(R"({{"type":{},"value":{},"ttl_ms":{}}})",
                     json_string(foreign->type),
                     foreign->value ? json_string(*foreign->value) : "null",
                     number_or_null(count(foreign->expires_in)));
}

std::string format_server(const observe::ServerFacts& server) {
  return fmt::format(R"({{"server":{},"state":{}}})",
                     json_string(server.url),
                     server.state ? fmt::format("\"{}\"", state_name(*server.state)) : "null");
}

std::string format_lock(const observe::LockFacts& lock) {
  std::size_t position = 0;
  const std::string mode = lock.capacity ? fmt::format("\"{}\"", mode_name(*lock.capacity)) : "null";
  const bool slots = lock.capacity && lock.capacity->value > 1;
  return fmt::format(
      R"({{"key":{},"state":"{}","mode":{},"slots":{},"cooling_ms":{},"holders":{},"waiting":{},"waiters":{},)"
      R"("last":{},"foreign":{},"counters":{{"acquired":{},"waited":{},"forced":{}}},"servers":{}}})",
      json_string(lock.name),
      state_name(lock.state),
      mode,
      slots ? std::to_string(lock.capacity->value) : "null",
      lock.cooling.count(),
      json_array(lock.holders, [&](const auto& h) { return format_holder(h, slots); }),
      number_or_null(lock.waiting),
      json_array(lock.waiters, [&](const auto& w) { return format_waiter(w, ++position); }),
      format_last(lock.last),
      format_foreign(lock.foreign),
      lock.acquired,
      lock.waited,
      lock.forced,
      lock.servers.empty() ? "null" : json_array(lock.servers, format_server));
}

}  // namespace

std::string_view state_name(observe::State state) {
  switch (state) {
    case observe::State::free:
      return "free";
    case observe::State::held:
      return "held";
    case observe::State::cooling:
      return "cooling";
    case observe::State::foreign:
      return "foreign";
  }
  return "";
}

std::string format_json(const std::vector<observe::LockFacts>& locks) { return json_array(locks, format_lock) + "\n"; }

}  // namespace rlock::cli
