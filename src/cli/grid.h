#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/colour.h"
#include "cli/screen.h"

namespace rlock::cli {

/// How a column gives way where a row does not fit the screen.
struct Column {
  enum class Cut { never, late, early };  // early: before any that is cut late

  std::string_view heading;
  Cut cut = Cut::never;
};

struct Cell {
  std::string text;  // untrusted: it is escaped here; empty: "-"
  std::string_view colour = colour::none;
};

/// As many as there are columns.
using Row = std::vector<Cell>;

/// A heading and a line for each row. On a screen that is too narrow columns leave from the right until the others fit
/// when cut short, and then they are cut no more than they must. Elsewhere nothing is left out or cut; only, one long
/// text does not push all the rows apart.
std::string format_grid(std::span<const Column> columns, std::vector<Row> rows, const Screen& screen);

}  // namespace rlock::cli
