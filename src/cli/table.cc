#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/columns.h"
#include "base/escape.h"
#include "cli/json.h"

namespace rlock::cli {
namespace {

constexpr std::size_t columns = 9;
using Row = std::array<std::string, columns>;

const Row header{"KEY", "STATE", "HOLDER", "PID", "COMMAND", "HELD", "LEASE", "FENCE", "WAITING"};

std::string lease_of(const observe::LockFacts& lock, const observe::HolderFacts& holder) {
  return format_duration(lock.state == observe::State::cooling ? lock.cooling : holder.lease);
}

std::string count_waiters(const observe::LockFacts& lock) {
  return lock.waiting ? std::to_string(*lock.waiting) : "no queue";
}

Row foreign_row(const observe::LockFacts& lock) {
  const auto& key = *lock.foreign;
  const std::string what = key.value ? fmt::format("{} \"{}\"", key.type, *key.value) : key.type;
  return {lock.name,
          "foreign",
          what,
          "-",
          "-",
          "-",
          key.expires_in ? format_duration(*key.expires_in) : "never",
          "-",
          count_waiters(lock)};
}

void add_rows(const observe::LockFacts& lock, std::vector<Row>& rows) {
  if (lock.foreign)
    rows.push_back(foreign_row(lock));
  for (const observe::HolderFacts& h : lock.holders) {
    rows.push_back({lock.name,
                    std::string{state_name(lock.state)},
                    h.owner.holder,
                    std::to_string(h.owner.pid),
                    h.owner.command.empty() ? "-" : h.owner.command,
                    format_duration(h.held),
                    lease_of(lock, h),
                    std::to_string(h.fence.value),
                    count_waiters(lock)});
  }
  if (!lock.foreign && lock.holders.empty()) {
    rows.push_back({lock.name, "free", "-", "-", "-", "-", "-", "-", count_waiters(lock)});
  }
  for (const observe::ServerFacts& server : lock.servers) {
    const std::string_view state = server.state ? state_name(*server.state) : "no answer";
    rows.push_back({"  " + server.url, std::string{state}, "-", "-", "-", "-", "-", "-", "-"});
  }
}

using Widths = std::array<std::size_t, columns>;

Widths measure(const std::vector<Row>& rows) {
  Widths widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], count_columns(row[i]));
  }
  return widths;
}

/// Takes from the widest of the columns that can be cut, until the rows fit or there is nothing left to take.
void shrink(Widths& widths, std::size_t gap, std::size_t limit) {
  constexpr std::array<std::size_t, 3> elastic{0, 2, 4};  // KEY, HOLDER, COMMAND
  constexpr std::size_t narrowest = 4;
  std::size_t total = std::accumulate(widths.begin(), widths.end(), gap * (columns - 1));
  while (total > limit) {
    const auto widest =
        *std::max_element(elastic.begin(), elastic.end(), [&](auto a, auto b) { return widths[a] < widths[b]; });
    if (widths[widest] <= narrowest)
      return;
    --widths[widest];
    --total;
  }
}

constexpr std::string_view plain = "\x1b[0m";

std::string_view colour_of(std::size_t row, std::size_t column, std::string_view text) {
  if (row == 0)
    return "\x1b[1m";
  if (column != 1)
    return {};
  if (text == "held")
    return "\x1b[32m";
  if (text == "free")
    return "\x1b[2m";
  return "\x1b[33m";  // cooling, foreign: held in another way
}

std::string format_cell(std::string_view text, std::size_t width, std::string_view colour) {
  const std::string cut = cut_to_columns(text, width);
  const std::string padding(width - count_columns(cut), ' ');
  return colour.empty() ? cut + padding : fmt::format("{}{}{}{}", colour, cut, plain, padding);
}

}  // namespace

std::string format_table(const std::vector<observe::LockFacts>& locks, const Screen& screen) {
  std::vector<Row> rows{header};
  for (const observe::LockFacts& lock : locks) add_rows(lock, rows);
  for (Row& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  Widths widths = measure(rows);
  const bool narrow = screen.columns > 0 && std::accumulate(widths.begin(), widths.end(), 2 * columns) > screen.columns;
  const std::size_t gap = narrow ? 1 : 2;
  if (narrow)
    shrink(widths, gap, screen.columns);
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string_view colour = screen.colour ? colour_of(r, i, rows[r][i]) : "";
      const bool last = i + 1 == columns;
      out += format_cell(rows[r][i], last ? count_columns(rows[r][i]) : widths[i], colour);
      out += last ? "\n" : std::string(gap, ' ');
    }
  }
  return out;
}

}  // namespace rlock::cli
