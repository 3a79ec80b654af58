#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/colour.h"
#include "cli/screen.h"

namespace rlock::cli {

/// A column, and whether it may be cut where a row does not fit the screen.
struct Column {
  enum class Cut { never, late, early };  // `early` columns are cut before `late` ones

  std::string_view heading;
  Cut cut = Cut::never;
};

struct Cell {
  std::string text;  // untrusted, and escaped when it is printed; an empty text is printed as "-"
  std::string_view colour = colour::none;
};

/// One cell for each column.
using Row = std::vector<Cell>;

/// Formats a heading and one line for each row. On a screen that is too narrow, columns are dropped from the right
/// until the others fit when they are cut, and those are cut no more than necessary. Where there is no screen nothing
/// is dropped or cut, and a single long text does not widen the column for all rows.
std::string format_grid(std::span<const Column> columns, std::vector<Row> rows, const Screen& screen);

}  // namespace rlock::cli
