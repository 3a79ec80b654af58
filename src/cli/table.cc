#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/grid.h"

namespace rlock::cli {
namespace {

using observe::HolderFacts;
using observe::LockFacts;
using observe::State;
using Cut = Column::Cut;

constexpr std::array status_columns{Column{"KEY", Cut::late},
                                    Column{"MODE"},
                                    Column{"HOLDER", Cut::late},
                                    Column{"PID"},
                                    Column{"COMMAND", Cut::early},
                                    Column{"HELD"},
                                    Column{"LEASE"},
                                    Column{"WAITING"},
                                    Column{"LAST"},
                                    Column{"NOTE", Cut::early},
                                    Column{"FENCE"}};

constexpr std::array log_columns{Column{"KEY", Cut::late},
                                 Column{"STARTED"},
                                 Column{"WAITED"},
                                 Column{"HELD"},
                                 Column{"END", Cut::late},
                                 Column{"HOLDER", Cut::late},
                                 Column{"COMMAND", Cut::early},
                                 Column{"NOTE", Cut::early}};

Cell state_of(State state) {
  return {std::string{observe::state_name(state)}, state == State::free ? colour::dim : colour::yellow};
}

Cell mode_of(const LockFacts& lock, const HolderFacts& holder) {
  if (holder.cools())
    return state_of(State::cooling);
  if (lock.capacity == lock::shared)
    return {"r", colour::green};
  const int slots = lock.capacity.value_or(lock::exclusive).value;
  return {slots == 1 ? "x" : fmt::format("{}/{}", holder.slot, slots), colour::green};
}

/// The duration in its largest unit only, such as "3h".
std::string format_roughly(Milliseconds duration) {
  const std::string text = format_duration(duration);
  const auto unit = text.find_first_of("dhm");
  return text.ends_with("ms") || unit == std::string::npos ? text : text.substr(0, unit + 1);
}

Cell last_of(const LockFacts& lock) {
  if (!lock.last)
    return {};
  const auto ago = std::max(Milliseconds{0}, lock.now - lock.last->ended_at);
  return {fmt::format("{} {} ago", lock.last->ending.brief(), format_roughly(ago)),
          lock.last->ending.is_failure() ? colour::red : colour::none};
}

Row holder_row(const LockFacts& lock, const HolderFacts& h) {
  const bool lives = h.kept && h.owner.pid > 0 && !h.cools();
  return {{lock.name},
          mode_of(lock, h),
          {h.owner.holder},
          {lives ? std::to_string(h.owner.pid) : ""},
          {h.owner.command},
          {format_duration(h.held)},
          {format_duration(h.cools() ? h.cooling : h.lease)},
          {std::to_string(lock.waiting)},
          last_of(lock),
          {h.owner.note},
          {std::to_string(h.fence.value)}};
}

/// The row of a lock that no rlock holds.
Row bare_row(const LockFacts& lock) {
  std::string holder;
  std::string lease;
  if (lock.foreign) {
    const auto& key = *lock.foreign;
    holder = key.value ? fmt::format("{} \"{}\"", key.type, *key.value) : key.type;
    lease = key.expires_in ? format_duration(*key.expires_in) : "never";
  }
  return {{lock.name},
          state_of(lock.state),
          {holder},
          {},
          {},
          {},
          {lease},
          {std::to_string(lock.waiting)},
          last_of(lock),
          {},
          {}};
}

Row server_row(const observe::ServerFacts& server) {
  Row row(status_columns.size());
  row[0].text = "  " + server.url;
  row[1].text = server.state ? observe::state_name(*server.state) : "no answer";
  return row;
}

void add_rows(const LockFacts& lock, std::vector<Row>& rows) {
  if (lock.foreign || lock.holders.empty())
    rows.push_back(bare_row(lock));
  for (const HolderFacts& holder : lock.holders) rows.push_back(holder_row(lock, holder));
  for (const observe::ServerFacts& server : lock.servers) rows.push_back(server_row(server));
}

Row run_row(const observe::Run& run) {
  return {{run.lock},
          {format_local(run.acquired_at)},
          {format_duration(run.waited)},
          {format_duration(run.held())},
          {run.ending.describe(), run.ending.is_failure() ? colour::red : colour::none},
          {run.owner.holder},
          {run.owner.command},
          {run.owner.note}};
}

}  // namespace

std::string format_table(const std::vector<LockFacts>& locks, const Screen& screen) {
  std::vector<Row> rows;
  for (const LockFacts& lock : locks) add_rows(lock, rows);
  return format_grid(status_columns, std::move(rows), screen);
}

std::string format_table(const std::vector<observe::Run>& runs, const Screen& screen) {
  std::vector<Row> rows;
  rows.reserve(runs.size());
  for (const observe::Run& run : runs) rows.push_back(run_row(run));
  return format_grid(log_columns, std::move(rows), screen);
}

}  // namespace rlock::cli
