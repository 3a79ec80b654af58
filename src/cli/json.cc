#include "cli/json.h"

#include <utility>

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

std::optional<int> signal_of(const Ending& ending) {
  return ending.kind == Ending::Kind::signalled ? std::optional{ending.number} : std::nullopt;
}

std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional{text};
}

std::optional<std::string> evictor_of(const observe::HolderFacts& h) {
  return h.evicted ? std::optional{h.evicted->by} : std::nullopt;
}

JsonObject add_owner(JsonObject object, const lock::Owner& owner, std::optional<int> pid) {
  return object.add("holder", owner.holder)
      .add("host", owner.host)
      .add("pid", pid)
      .add("user", owner.user)
      .add("command", owner.command)
      .add("note", owner.note);
}

/// After what it cools.
Json format_failures(const lock::Failures& failures) {
  const auto last = observe::Ending::read(failures.end);
  return JsonObject{}
      .add("failures", failures.count)
      .add("end", ending_name(last.kind))
      .add("exit_status", last.status())
      .json();
}

Json format_holder(const observe::HolderFacts& h, bool slots) {
  return add_owner({}, h.owner, h.pid())
      .add("kept", h.has_keeper)
      .add("dead", h.dead)
      .add("acquired_at", format_utc(h.acquired_at))
      .add("waited_ms", h.waited.count())
      .add("held_ms", h.held.count())
      .add("lease_ms", h.lease.count())
      .add("cooling_ms", h.cooling.count())
      .add("cooling_after", json_or_null(h.failures, format_failures))
      .add("fence", h.fence.value)
      .add("slot", slots ? std::optional{h.slot} : std::nullopt)
      .add("count", h.levels)
      .add("evicted_by", evictor_of(h))
      .json();
}

Json format_waiter(const observe::WaiterFacts& w, std::size_t position) {
  return add_owner({}, w.owner, w.owner.pid)
      .add("position", position)
      .add("waiting_ms", w.waiting.count())
      .add("mode", mode_name(w.wanted))
      .add("slots", slots_of(w.wanted))
      .add("first", w.first)
      .json();
}

JsonObject format_past(const observe::Run& run) {
  return add_owner({}, run.owner, run.owner.pid)
      .add("acquired_at", format_utc(run.acquired_at))
      .add("ended_at", format_utc(run.ended_at))
      .add("held_ms", run.held().count())
      .add("end", ending_name(run.ending.kind))
      .add("exit_status", run.ending.status());
}

Json format_last(const observe::Run& run) { return format_past(run).json(); }

Json format_success(const observe::Run& run) { return format_past(run).add("once", text_or_null(run.once)).json(); }

Json format_hold(const observe::HoldFacts& hold) {
  return JsonObject{}
      .add("since", format_utc(hold.since))
      .add("until", format_utc(hold.hold.until))
      .add("by", hold.hold.by.holder)
      .add("note", hold.hold.by.note)
      .json();
}

Json format_foreign(const observe::ForeignFacts& foreign) {
  const auto ttl = foreign.expires_in ? std::optional{foreign.expires_in->count()} : std::nullopt;
  return JsonObject{}.add("type", foreign.type).add("value", foreign.value).add("ttl_ms", ttl).json();
}

Json format_skips(const observe::Counters& counters) {
  JsonObject object;
  for (std::size_t i = 0; i < counters.skipped.size(); ++i)
    object.add(observe::skip_reasons.at(i).name, counters.skipped.at(i));
  return object.json();
}

Json format_skip(const observe::Skip& skip) {
  return JsonObject{}
      .add("holder", skip.holder)
      .add("host", skip.host)
      .add("at", format_utc(skip.at))
      .add("reason", skip.reason)
      .json();
}

Json format_counters(const observe::Counters& counters) {
  return JsonObject{}
      .add("acquired", counters.acquired)
      .add("waited", counters.waited)
      .add("evicted", counters.evicted)
      .add("lost", counters.lost)
      .add("failed", counters.failed)
      .add("failed_in_a_row", counters.failing)
      .add("skipped", format_skips(counters))
      .add("last_skip", json_or_null(counters.last_skip, format_skip))
      .json();
}

Json format_server(const observe::ServerFacts& server) {
  const auto state = server.state ? std::optional{observe::state_name(*server.state)} : std::nullopt;
  return JsonObject{}.add("server", server.url).add("state", state).json();
}

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
      .add("last", json_or_null(lock.last, format_last))
      .add("success", json_or_null(lock.success, format_success))
      .add("hold", json_or_null(lock.hold, format_hold))
      .add("foreign", json_or_null(lock.foreign, format_foreign))
      .add("counters", format_counters(lock.counters))
      .add("servers", lock.servers.empty() ? std::nullopt : std::optional{json_array(lock.servers, format_server)})
      .json();
}

/// The beginning or end of a hold: it has none of a run's members but the key.
Json format_event(const observe::Run& event) {
  return JsonObject{}
      .add("key", event.lock)
      .add("event", ending_name(event.ending.kind))
      .add("at", format_utc(event.ended_at))
      .add("until", event.hold_until ? std::optional{format_utc(*event.hold_until)} : std::nullopt)
      .add("holder", event.owner.holder)
      .add("note", event.owner.note)
      .add("by", text_or_null(event.ending.by))
      .json();
}

Json format_run(const observe::Run& run) {
  if (!run.ending.is_of_run())
    return format_event(run);
  JsonObject object;
  object.add("key", run.lock)
      .add("fence", run.fence.value)
      .add("mode", mode_name(run.capacity))
      .add("slots", slots_of(run.capacity));
  return add_owner(std::move(object), run.owner, run.owner.pid)
      .add("acquired_at", format_utc(run.acquired_at))
      .add("ended_at", format_utc(run.ended_at))
      .add("waited_ms", run.waited.count())
      .add("held_ms", run.held().count())
      .add("end", ending_name(run.ending.kind))
      .add("exit_status", run.ending.status())
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
