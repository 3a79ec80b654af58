#include "cli/json.h"

#include "base/json.h"

namespace rlock::cli {
namespace {

using observe::Ending;

std::string_view mode_name(lock::Capacity capacity) {
  if (capacity == lock::shared)
    return "shared";
  return capacity == lock::exclusive ? "exclusive" : "slots";
}

std::optional<int> slots_of(std::optional<lock::Capacity> capacity) {
  return capacity && capacity->value > 1 ? std::optional{capacity->value} : std::nullopt;
}

/// The status as a shell would report it; empty where it is not known.
std::optional<int> status_of(const Ending& ending) {
  if (ending.kind == Ending::Kind::signalled)
    return static_cast<int>(killed_by(ending.number));
  return ending.kind == Ending::Kind::exited ? std::optional{ending.number} : std::nullopt;
}

std::optional<int> signal_of(const Ending& ending) {
  return ending.kind == Ending::Kind::signalled ? std::optional{ending.number} : std::nullopt;
}

std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional{text};
}

std::optional<std::string> evictor_of(const observe::HolderFacts& h) {
  return h.evicted ? std::optional{h.evicted->by} : std::nullopt;
}

JsonObject& add_owner(JsonObject& object, const lock::Owner& owner) {
  return object.add("holder", owner.holder)
      .add("host", owner.host)
      .add("pid", owner.pid)
      .add("user", owner.user)
      .add("command", owner.command)
      .add("note", owner.note);
}

Json format_holder(const observe::HolderFacts& h, bool slots) {
  JsonObject object;
  return add_owner(object, h.owner)
      .add("kept", h.kept)
      .add("acquired_at", format_utc(h.acquired_at))
      .add("waited_ms", h.waited.count())
      .add("held_ms", h.held.count())
      .add("lease_ms", h.lease.count())
      .add("cooling_ms", h.cooling.count())
      .add("fence", h.fence.value)
      .add("slot", slots ? std::optional{h.slot} : std::nullopt)
      .add("count", h.levels)
      .add("evicted_by", evictor_of(h))
      .json();
}

Json format_waiter(const observe::WaiterFacts& w, std::size_t position) {
  JsonObject object;
  return add_owner(object, w.owner)
      .add("position", position)
      .add("waiting_ms", w.waiting.count())
      .add("mode", mode_name(w.wanted))
      .add("slots", slots_of(w.wanted))
      .json();
}

Json format_last(const observe::LastRun& last) {
  JsonObject object;
  return add_owner(object, last.owner)
      .add("acquired_at", format_utc(last.acquired_at))
      .add("ended_at", format_utc(last.ended_at))
      .add("held_ms", last.held.count())
      .add("end", ending_name(last.ending.kind))
      .add("exit_status", status_of(last.ending))
      .json();
}

Json format_success(const observe::Success& success) {
  JsonObject object;
  return add_owner(object, success.owner)
      .add("acquired_at", format_utc(success.acquired_at))
      .add("ended_at", format_utc(success.ended_at))
      .json();
}

Json format_foreign(const observe::ForeignFacts& foreign) {
  const auto ttl = foreign.expires_in ? std::optional{foreign.expires_in->count()} : std::nullopt;
  return JsonObject{}.add("type", foreign.type).add("value", foreign.value).add("ttl_ms", ttl).json();
}

Json format_counters(const observe::Counters& counters) {
  return JsonObject{}
      .add("acquired", counters.acquired)
      .add("waited", counters.waited)
      .add("forced", counters.forced)
      .add("lost", counters.lost)
      .json();
}

Json format_server(const observe::ServerFacts& server) {
  const auto state = server.state ? std::optional{observe::state_name(*server.state)} : std::nullopt;
  return JsonObject{}.add("server", server.url).add("state", state).json();
}

/// An optional value as an array with one element or none.
template <typename Value, typename Format>
Json array_of(const std::optional<Value>& value, Format format) {
  return value ? Json{"[" + format(*value).text + "]"} : Json{"[]"};
}

Json null() { return {"null"}; }

Json format_lock(const observe::LockFacts& lock) {
  std::size_t position = 0;
  const auto mode = lock.capacity ? std::optional{mode_name(*lock.capacity)} : std::nullopt;
  const auto slots = slots_of(lock.capacity);
  return JsonObject{}
      .add("key", lock.name)
      .add("state", observe::state_name(lock.state))
      .add("mode", mode)
      .add("slots", slots)
      .add("cooling_ms", lock.cooling.count())
      .add("holders", json_array(lock.holders, [&](const auto& h) { return format_holder(h, slots.has_value()); }))
      .add("waiting", lock.waiting)
      .add("waiters", json_array(lock.waiters, [&](const auto& w) { return format_waiter(w, ++position); }))
      .add("last", array_of(lock.last, format_last))
      .add("success", lock.success ? format_success(*lock.success) : null())
      .add("foreign", lock.foreign ? format_foreign(*lock.foreign) : null())
      .add("counters", format_counters(lock.counters))
      .add("servers", lock.servers.empty() ? null() : json_array(lock.servers, format_server))
      .json();
}

Json format_run(const observe::Run& run) {
  JsonObject object;
  object.add("key", run.lock)
      .add("fence", run.fence.value)
      .add("mode", mode_name(run.capacity))
      .add("slots", slots_of(run.capacity));
  return add_owner(object, run.owner)
      .add("acquired_at", format_utc(run.acquired_at))
      .add("ended_at", format_utc(run.ended_at))
      .add("waited_ms", run.waited.count())
      .add("held_ms", run.held().count())
      .add("end", ending_name(run.ending.kind))
      .add("exit_status", status_of(run.ending))
      .add("signal", signal_of(run.ending))
      .add("by", text_or_null(run.ending.by))
      .json();
}

}  // namespace

std::string format_json(const std::vector<observe::LockFacts>& locks) {
  return json_array(locks, format_lock).text + "\n";
}

std::string format_json(const std::vector<observe::Run>& runs) { return json_array(runs, format_run).text + "\n"; }

}  // namespace rlock::cli
