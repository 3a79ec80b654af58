#include "cli/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/config.h"

namespace rlock::cli {

Screen Screen::now() {
  if (::isatty(STDOUT_FILENO) == 0)
    return {};
  winsize size{};
  ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  const bool dumb = from_environment("TERM").value_or("dumb") == "dumb";
  return {.is_terminal = true,
          .columns = size.ws_col,
          .rows = size.ws_row,
          .colour = !dumb && !from_environment("NO_COLOR")};
}

void print(std::string_view text) { write_all(STDOUT_FILENO, text, "cannot write to stdout"); }

}  // namespace rlock::cli
