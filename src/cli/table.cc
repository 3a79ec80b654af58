#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "base/columns.h"
#include "base/escape.h"
#include "base/word.h"

namespace rlock::cli {
namespace {

/// A column, and what becomes of it where a row does not fit the screen.
struct Column {
  enum class Cut { never, late, early };  // `early` columns are cut before `late` ones

  std::string_view heading;
  Cut cut = Cut::never;
  std::size_t least = 0;    // it is cut to no less than this, unless the screen is tiny
  int leaves = 0;           // 1 is the first to be left out, 0 is never left out
  std::string_view zero{};  // a text that says no more than an empty one
  std::size_t wanted = 0;   // it is cut to no less than this as long as a minor column could leave instead
  Keep keep = Keep::beginning;
};

struct Cell {
  std::string text;  // untrusted, and escaped when it is printed; an empty text is printed as "-"
  std::string_view colour = colour::none;
  std::string brief{};  // what stands for it, also untrusted, where the screen is too narrow for the rows
};

/// One cell for each column.
using Row = std::vector<Cell>;

constexpr std::string_view nothing = "-";   // what an empty text is printed as
constexpr std::size_t widest_in_pipe = 48;  // as a hold with a few words has; a longer text does not widen its column

/// A heading and one line for each row. On a screen that is too narrow cells become brief, and columns are left out:
/// first those that are empty, the last one first, until the others fit, and then in the order of `leaves`, until the
/// others fit when they are cut, and those are cut no more than necessary. Those that leave at `last_minor` or before
/// are minor ones. Where there is no screen nothing is left out or cut, and a single long text does not widen the
/// column for all rows.
class Grid {
 public:
  Grid(std::span<const Column> columns, int last_minor, std::vector<Row> rows, const Screen& screen)
      : columns_(columns),
        last_minor_(last_minor),
        rows_(std::move(rows)),
        screen_(screen),
        widths_(columns.size()),
        shown_(columns.size()) {
    std::iota(shown_.begin(), shown_.end(), 0UL);
    for (const Column& column : columns) headings_.push_back({std::string{column.heading}, colour::bold});
    escape(headings_);
    for (Row& row : rows_) escape(row);
    measure();
    if (screen_.columns == 0) {
      for (std::size_t& width : widths_) width = std::min(width, widest_in_pipe);
    } else {
      fit();
    }
  }

  std::string text() const {
    std::string out;
    add_row(headings_, out);
    for (const Row& row : rows_) add_row(row, out);
    return out;
  }

 private:
  static void escape(Row& row) {
    for (Cell& cell : row) {
      cell.text = cell.text.empty() ? std::string{nothing} : printable(cell.text);
      cell.brief = printable(cell.brief);
    }
  }

  void measure() {
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      widths_[i] = count_columns(headings_[i].text);
      for (const Row& row : rows_) widths_[i] = std::max(widths_[i], count_columns(row[i].text));
    }
  }

  std::size_t total() const {
    std::size_t sum = 0;
    for (const std::size_t i : shown_) sum += widths_[i];
    return sum + gap_ * (shown_.size() - 1);
  }

  void fit() {
    if (total() <= screen_.columns)
      return;
    gap_ = 1;
    if (total() > screen_.columns)
      make_brief();
    while (total() > screen_.columns && leave_empty_one_out()) {
    }
    constexpr auto wanted = [](const Column& c) { return std::max(c.least, c.wanted); };
    constexpr auto least = [](const Column& c) { return c.least; };
    leave_out(last_minor_, wanted);
    leave_out(std::numeric_limits<int>::max(), least);
    for (const auto cut : {Column::Cut::early, Column::Cut::late})
      shrink([cut](const Column& c) { return c.cut == cut; }, wanted);
    shrink([](const Column& c) { return c.cut != Column::Cut::never; }, least);
    shrink([](const Column& c) { return c.cut != Column::Cut::never; }, [](const Column&) { return std::size_t{1}; });
  }

  template <typename Least>
  std::size_t least_total(Least least) const {
    std::size_t sum = gap_ * (shown_.size() - 1);
    for (const std::size_t i : shown_)
      sum += columns_[i].cut == Column::Cut::never ? widths_[i] : std::min(widths_[i], least(columns_[i]));
    return sum;
  }

  void make_brief() {
    for (Row& row : rows_) {
      for (Cell& cell : row) {
        if (!cell.brief.empty())
          cell.text = std::exchange(cell.brief, "");
      }
    }
    measure();
  }

  /// Leaves out a column that has nothing in any row.
  bool leave_empty_one_out() {
    const auto is_empty = [this](std::size_t i) {
      return std::all_of(rows_.begin(), rows_.end(), [zero = columns_[i].zero, i](const Row& row) {
        return row[i].text == nothing || row[i].text == zero;
      });
    };
    const auto found = rows_.empty() ? shown_.rend() : std::find_if(shown_.rbegin(), shown_.rend(), is_empty);
    if (found == shown_.rend())
      return false;
    shown_.erase(std::next(found).base());
    return true;
  }

  /// Leaves out columns until the others fit when they are cut, the last at `last`. Where there is room for one of them
  /// after all, it stays away: else a wider screen could show a large one in place of several small ones.
  template <typename Least>
  void leave_out(int last, Least least) {
    while (least_total(least) > screen_.columns) {
      const auto first = first_to_leave(last);
      if (first == shown_.end())
        return;
      shown_.erase(first);
    }
  }

  std::vector<std::size_t>::iterator first_to_leave(int last) {
    auto first = shown_.end();
    for (auto i = shown_.begin(); i != shown_.end(); ++i) {
      const int leaves = columns_[*i].leaves;
      if (leaves != 0 && leaves <= last && (first == shown_.end() || leaves < columns_[*first].leaves))
        first = i;
    }
    return first;
  }

  /// Narrows the widest of the columns again and again until the rows fit or none is wider than it must be.
  template <typename May, typename Least>
  void shrink(May may, Least least) {
    while (total() > screen_.columns) {
      std::size_t* widest = nullptr;
      for (const std::size_t i : shown_) {
        const bool can = may(columns_[i]) && widths_[i] > least(columns_[i]);
        if (can && (widest == nullptr || widths_[i] > *widest))
          widest = &widths_[i];
      }
      if (widest == nullptr)
        return;
      --*widest;
    }
  }

  void add_row(const Row& row, std::string& out) const {
    for (const std::size_t i : shown_) add_cell(row[i], i, out);
    out += '\n';
  }

  void add_cell(const Cell& cell, std::size_t column, std::string& out) const {
    const bool coloured = screen_.colour && !cell.colour.empty();
    std::size_t width = count_columns(cell.text);
    if (coloured)
      out += cell.colour;
    if (screen_.columns == 0 || width <= widths_[column]) {
      out += cell.text;
    } else {
      const std::string cut = cut_to_columns(cell.text, widths_[column], screen_.utf8, columns_[column].keep);
      width = count_columns(cut);  // one less than asked for where a wide character did not fit
      out += cut;
    }
    if (coloured)
      out += colour::plain;
    if (column != shown_.back())
      out.append(std::max(widths_[column], width) - width + gap_, ' ');
  }

  std::span<const Column> columns_;
  int last_minor_;
  Row headings_;
  std::vector<Row> rows_;
  const Screen& screen_;
  std::vector<std::size_t> widths_;
  std::vector<std::size_t> shown_;  // the indices of the columns that are
  std::size_t gap_ = 2;
};

using observe::HolderFacts;
using observe::LockFacts;
using observe::State;
using Cut = Column::Cut;

/// KEY and FENCE are what `release --force` needs: FENCE stays, and so does a KEY that is not very long. But who holds
/// it, since when and who waits is what one looks for.
constexpr std::array status_columns{
    Column{.heading = "KEY", .cut = Cut::early, .least = 16, .wanted = 32, .keep = Keep::both_ends},
    Column{.heading = "MODE"},
    Column{.heading = "HOLDER", .cut = Cut::late, .least = 12, .wanted = 20, .keep = Keep::both_ends},
    Column{.heading = "PID", .leaves = 4},
    Column{.heading = "COMMAND", .cut = Cut::early, .least = 8, .leaves = 3, .wanted = 20},
    Column{.heading = "HELD", .leaves = 7},
    Column{.heading = "LEASE", .leaves = 5},
    Column{.heading = "WAITING", .leaves = 6, .zero = "0"},
    Column{.heading = "LAST", .leaves = 2},
    Column{.heading = "NOTE", .cut = Cut::early, .least = 12, .leaves = 1},
    Column{.heading = "FENCE"}};
constexpr std::size_t key_column = 0, lease_column = 6, last_column = 8;
constexpr int last_minor_of_status = 5, leaves_last = 8;

/// How a run ended is what one looks for here, and then whose it was and how long it took.
constexpr std::array log_columns{
    Column{.heading = "KEY", .cut = Cut::late, .least = 16, .wanted = 32, .keep = Keep::both_ends},
    Column{.heading = "STARTED"},
    Column{.heading = "WAITED", .leaves = 2},
    Column{.heading = "HELD", .leaves = 5},
    Column{.heading = "END", .cut = Cut::late, .least = 12, .wanted = 26},
    Column{.heading = "HOLDER", .cut = Cut::late, .least = 12, .leaves = 4, .wanted = 20, .keep = Keep::both_ends},
    Column{.heading = "COMMAND", .cut = Cut::early, .least = 12, .leaves = 3},
    Column{.heading = "NOTE", .cut = Cut::early, .least = 12, .leaves = 1}};
constexpr int last_minor_of_log = 3;

Cell state_of(State state) {
  return {std::string{observe::state_name(state)}, state == State::free ? colour::dim : colour::yellow};
}

Cell mode_of(const LockFacts& lock, const HolderFacts& holder) {
  if (holder.cools())
    return state_of(State::cooling);
  if (holder.dead)
    return {"dead", colour::red};
  const std::string_view shade = holder.evicted ? colour::yellow : colour::green;
  if (lock.capacity == lock::shared)
    return {"r", shade};
  const int slots = lock.capacity.value_or(lock::exclusive).value;
  return {slots == 1 ? "x" : fmt::format("{}/{}", holder.slot, slots), shade};
}

Cell last_of(const LockFacts& lock) {
  if (!lock.last)
    return {};
  return {observe::describe_end(*lock.last, lock.now), lock.last->ending.is_failure() ? colour::red : colour::none};
}

/// How many wait, and who is the first of them.
Cell waiting_of(const LockFacts& lock) {
  std::string count = std::to_string(lock.waiting);
  if (lock.waiters.empty())
    return {count};
  const observe::WaiterFacts& head = lock.waiters.front();
  std::string whole = fmt::format("{} ({}{})", count, head.owner.holder, head.first ? ", --first" : "");
  return {std::move(whole), colour::none, std::move(count)};
}

/// An eviction that is under way is what one must know first.
std::string note_of(const HolderFacts& h) {
  if (!h.evicted)
    return h.owner.note;
  return fmt::format("being evicted by {}{}", h.evicted->by, h.owner.remark());
}

Row holder_row(const LockFacts& lock, const HolderFacts& h) {
  return {{lock.name},
          mode_of(lock, h),
          {h.owner.holder},
          {h.pid() ? std::to_string(*h.pid()) : ""},
          {h.owner.command},
          {format_duration(h.held)},
          {format_duration(h.cools() ? h.cooling : h.lease)},
          waiting_of(lock),
          last_of(lock),
          {note_of(h)},
          {std::to_string(h.fence.value)}};
}

/// The row of a lock that no rlock holds.
Row bare_row(const LockFacts& lock) {
  std::string holder;
  std::string lease;
  if (lock.foreign) {
    holder = observe::describe(*lock.foreign);
    lease = lock.foreign->expires_in ? format_duration(*lock.foreign->expires_in) : "never";
  }
  return {{lock.name}, state_of(lock.state), {holder}, {}, {}, {}, {lease}, waiting_of(lock), last_of(lock), {}, {}};
}

/// The row of a hold: who has put the lock on hold, how much longer, until when and why.
Row hold_row(const LockFacts& lock, const lock::Hold& hold) {
  const lock::Owner& by = hold.by;
  const Milliseconds left = std::max(Milliseconds{0}, hold.until - lock.now);
  return {{lock.name},
          {"hold", colour::yellow},
          {by.holder},
          {},
          {},
          {},
          {format_duration(left)},
          waiting_of(lock),
          last_of(lock),
          {fmt::format("until {}{}", format_soon(hold.until, lock.now), by.remark())},
          {}};
}

Row server_row(const observe::ServerFacts& server) {
  Row row(status_columns.size());
  row[0].text = "  " + server.url;
  row[1].text = server.state ? observe::state_name(*server.state) : "no answer";
  return row;
}

void add_rows(const LockFacts& lock, std::vector<Row>& rows) {
  if (lock.hold)
    rows.push_back(hold_row(lock, lock.hold->hold));
  if (lock.foreign || (lock.holders.empty() && !lock.hold))
    rows.push_back(bare_row(lock));
  for (const HolderFacts& holder : lock.holders) rows.push_back(holder_row(lock, holder));
  for (const observe::ServerFacts& server : lock.servers) rows.push_back(server_row(server));
}

/// `evicted by root@db1 pid 8784`, without the process, which has ended since: a screen has no room for it.
std::string without_pid(std::string end) {
  const std::string_view word = " pid ";
  const auto at = end.rfind(word);
  if (at != std::string::npos && is_digits(std::string_view{end}.substr(at + word.size())))
    end.resize(at);
  return end;
}

/// Until when a hold that began lasts, or for how long, which takes less room on a screen.
std::string describe_hold(const observe::Run& run, const Screen& screen) {
  return screen.columns == 0 ? "on hold until " + format_soon(*run.hold_until, run.acquired_at)
                             : "on hold " + format_duration(*run.hold_until - run.acquired_at);
}

Cell end_of(const observe::Run& run, const Screen& screen) {
  const std::string end = run.ending.describe();
  if (run.ending.is_of_run())
    return {screen.columns == 0 ? end : without_pid(end), run.ending.is_failure() ? colour::red : colour::none};
  const bool begins = run.hold_until && run.ending.kind == observe::Ending::Kind::hold;
  return {begins ? describe_hold(run, screen) : end, colour::yellow, begins ? "" : run.ending.brief()};
}

/// The year, with a dash, is left out where it is this one.
Cell started_of(const observe::Run& run) {
  constexpr std::size_t year = 5;
  std::string whole = format_local(run.acquired_at);
  const bool is_this_year = whole.starts_with(format_local(wall_now()).substr(0, year));
  std::string brief = is_this_year ? whole.substr(year) : "";
  return {std::move(whole), colour::none, std::move(brief)};
}

/// For how long a run held the lock.
std::string held_of(const observe::Run& run) { return format_duration(run.held()) + (run.is_end_known() ? "" : "?"); }

/// The beginning or end of a hold is a moment, and has no command.
Row run_row(const observe::Run& run, const Screen& screen) {
  const bool is_run = run.ending.is_of_run();
  return {{run.lock},
          started_of(run),
          {is_run ? format_duration(run.waited) : ""},
          {is_run ? held_of(run) : ""},
          end_of(run, screen),
          {run.owner.holder},
          {is_run ? run.owner.command : ""},
          {run.owner.note}};
}

}  // namespace

std::string format_table(const std::vector<LockFacts>& locks, const Screen& screen) {
  std::vector<Row> rows;
  for (const LockFacts& lock : locks) add_rows(lock, rows);
  auto columns = status_columns;
  if (screen.columns <= 80)  // wider ones have room for more than a long name
    columns[key_column].wanted = 40;
  // All that a row can say of a free lock is LAST, and LEASE of one that is not free, although nobody holds it.
  for (const LockFacts& lock : locks) {
    if (lock.hold || lock.state == State::cooling || lock.state == State::foreign)
      columns[lease_column].leaves = leaves_last;
    else if (lock.state == State::free)
      columns[last_column].leaves = leaves_last;
  }
  return Grid{columns, last_minor_of_status, std::move(rows), screen}.text();
}

std::string format_table(const std::vector<observe::Run>& runs, const Screen& screen) {
  std::vector<Row> rows;
  rows.reserve(runs.size());
  for (const observe::Run& run : runs) rows.push_back(run_row(run, screen));
  return Grid{log_columns, last_minor_of_log, std::move(rows), screen}.text();
}

}  // namespace rlock::cli
