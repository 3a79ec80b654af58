#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/escape.h"
#include "cli/json.h"

namespace rlock::cli {
namespace {

constexpr std::size_t columns = 9;
using Row = std::array<std::string, columns>;

const Row header{"KEY", "STATE", "HOLDER", "PID", "COMMAND", "HELD", "LEASE", "FENCE", "WAITING"};

/// Code points: near enough to the width, and right for all but wide scripts.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; }));
}

std::string lease_of(const lock::LockFacts& lock, const lock::HolderFacts& holder) {
  return format_duration(lock.state == lock::State::cooling ? lock.cooling : holder.lease);
}

Row foreign_row(const lock::LockFacts& lock) {
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
          std::to_string(lock.waiting)};
}

void add_rows(const lock::LockFacts& lock, std::vector<Row>& rows) {
  if (lock.foreign)
    rows.push_back(foreign_row(lock));
  for (const lock::HolderFacts& h : lock.holders) {
    rows.push_back({lock.name,
                    std::string{state_name(lock.state)},
                    h.owner.holder,
                    std::to_string(h.owner.pid),
                    h.owner.command.empty() ? "-" : h.owner.command,
                    format_duration(h.held),
                    lease_of(lock, h),
                    std::to_string(h.fence.value),
                    std::to_string(lock.waiting)});
  }
  if (!lock.foreign && lock.holders.empty()) {
    rows.push_back({lock.name, "free", "-", "-", "-", "-", "-", "-", std::to_string(lock.waiting)});
  }
  for (const lock::ServerFacts& server : lock.servers) {
    const std::string_view state = server.state ? state_name(*server.state) : "no answer";
    rows.push_back({"  " + server.url, std::string{state}, "-", "-", "-", "-", "-", "-", "-"});
  }
}

}  // namespace

std::string format_table(const std::vector<lock::LockFacts>& locks) {
  std::vector<Row> rows{header};
  for (const lock::LockFacts& lock : locks) add_rows(lock, rows);
  std::array<std::size_t, columns> widths{};
  for (Row& row : rows) {
    for (std::size_t i = 0; i < columns; ++i) {
      row[i] = printable(row[i]);
      widths[i] = std::max(widths[i], width(row[i]));
    }
  }
  std::string out;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < columns; ++i) {
      out += row[i];
      out += i + 1 < columns ? std::string(widths[i] - width(row[i]) + 2, ' ') : "\n";
    }
  }
  return out;
}

}  // namespace rlock::cli
