#pragma once

#include <termios.h>

#include <cstddef>
#include <string_view>

namespace rlock::cli {

/// The terminal on stdout, if there is one.
struct Screen {
  bool is_terminal = false;
  std::size_t columns = 0;  // 0 means no limit
  std::size_t rows = 0;     // 0 means no limit
  bool obeys = false;       // whether it obeys escape sequences
  bool colour = false;      // whether it has colours and NO_COLOR is not set
  bool utf8 = false;        // whether the locale says UTF-8

  /// Not cached, since a window may be resized.
  static Screen now();
};

/// Takes the terminal's whole screen for as long as it lives, and gives it back with what was there before. Keys are
/// read as they are typed, and not shown.
class FullScreen {
 public:
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  /// Where keys can be read; -1 where standard input is not the terminal, or is another program's at the moment.
  int keys() const { return keys_; }

 private:
  int keys_ = -1;
  termios before_{};
};

/// Writes the whole text to stdout. Throws Error{os}.
void print(std::string_view text);
/// The same for what is only looked at: where nobody reads on, as in `rlock log | head`, we end without a word.
void show(std::string_view text);

}  // namespace rlock::cli

/// The escape sequences that select a terminal's colours.
namespace rlock::cli::colour {

constexpr std::string_view none{};
constexpr std::string_view bold = "\x1b[1m";
constexpr std::string_view dim = "\x1b[2m";
constexpr std::string_view red = "\x1b[31m";
constexpr std::string_view green = "\x1b[32m";
constexpr std::string_view bright_green = "\x1b[92m";
constexpr std::string_view yellow = "\x1b[33m";
constexpr std::string_view plain = "\x1b[0m";

}  // namespace rlock::cli::colour
