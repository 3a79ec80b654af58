#include "cli/grid.h"

#include <algorithm>
#include <numeric>

#include "base/columns.h"
#include "base/escape.h"

namespace rlock::cli {
namespace {

constexpr std::size_t shortest = 12;        // no column is cut to less than this, unless the screen is tiny
constexpr std::size_t widest_in_pipe = 32;  // a longer text does not widen its column

using Widths = std::vector<std::size_t>;

/// The rows with their texts escaped, and the layout.
class Grid {
 public:
  Grid(std::span<const Column> columns, std::vector<Row> rows, const Screen& screen)
      : columns_(columns), rows_(std::move(rows)), screen_(screen), widths_(columns.size()) {
    for (const Column& column : columns) headings_.push_back({std::string{column.heading}, colour::bold});
    measure(headings_);
    for (Row& row : rows_) measure(row);
    if (screen_.columns == 0) {
      let_long_texts_stick_out();
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
  void measure(Row& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i].text = row[i].text.empty() ? "-" : printable(row[i].text);
      widths_[i] = std::max(widths_[i], count_columns(row[i].text));
    }
  }

  void let_long_texts_stick_out() {
    for (std::size_t& width : widths_) width = std::min(width, widest_in_pipe);
  }

  std::size_t total() const { return std::accumulate(widths_.begin(), widths_.end(), gap_ * (widths_.size() - 1)); }

  void fit() {
    if (total() <= screen_.columns)
      return;
    gap_ = 1;
    while (widths_.size() > 1 && least_total() > screen_.columns) widths_.pop_back();
    for (const auto cut : {Column::Cut::early, Column::Cut::late}) shrink(cut, shortest);
    shrink(Column::Cut::late, 1);  // only on an extremely narrow screen
  }

  std::size_t least_total() const {
    std::size_t least = gap_ * (widths_.size() - 1);
    for (std::size_t i = 0; i < widths_.size(); ++i)
      least += columns_[i].cut == Column::Cut::never ? widths_[i] : std::min(widths_[i], shortest);
    return least;
  }

  /// Narrows the widest of the columns again and again until the rows fit or no column is wider than `least`.
  void shrink(Column::Cut which, std::size_t least) {
    while (total() > screen_.columns) {
      std::size_t* widest = nullptr;
      for (std::size_t i = 0; i < widths_.size(); ++i) {
        if (columns_[i].cut == which && (widest == nullptr || widths_[i] > *widest))
          widest = &widths_[i];
      }
      if (widest == nullptr || *widest <= least)
        return;
      --*widest;
    }
  }

  void add_row(const Row& row, std::string& out) const {
    for (std::size_t i = 0; i < widths_.size(); ++i) add_cell(row[i], i, out);
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
      const std::string cut = cut_to_columns(cell.text, widths_[column]);
      width = count_columns(cut);  // one less than asked for where a wide character did not fit
      out += cut;
    }
    if (coloured)
      out += colour::plain;
    if (column + 1 < widths_.size())
      out.append(std::max(widths_[column], width) - width + gap_, ' ');
  }

  std::span<const Column> columns_;
  Row headings_;
  std::vector<Row> rows_;
  const Screen& screen_;
  Widths widths_;  // only of the columns that are shown
  std::size_t gap_ = 2;
};

}  // namespace

std::string format_grid(std::span<const Column> columns, std::vector<Row> rows, const Screen& screen) {
  return Grid{columns, std::move(rows), screen}.text();
}

}  // namespace rlock::cli
