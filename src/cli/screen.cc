#include "cli/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/signals.h"
#include "base/word.h"
#include "cli/config.h"

namespace rlock::cli {

namespace {

bool wants_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const auto locale = from_environment(variable)) {
      const std::string name = lower(*locale);
      return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
    }
  }
  return false;
}

}  // namespace

Screen Screen::now() {
  if (::isatty(STDOUT_FILENO) == 0)
    return {.utf8 = wants_utf8()};
  winsize size{};
  ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  const bool obeys = from_environment("TERM").value_or("dumb") != "dumb";
  return {.is_terminal = true,
          .columns = size.ws_col,
          .rows = size.ws_row,
          .obeys = obeys,
          .colour = obeys && !from_environment("NO_COLOR"),
          .utf8 = wants_utf8()};
}

FullScreen::FullScreen() {
  const bool ours = ::isatty(STDIN_FILENO) != 0 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  if (ours && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    if (::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0)
      keys_ = STDIN_FILENO;
  }
  print("\x1b[?1049h\x1b[?25l");
}

FullScreen::~FullScreen() {
  if (keys_ >= 0)
    ::tcsetattr(keys_, TCSANOW, &before_);
  constexpr std::string_view back = "\x1b[?25h\x1b[?1049l";
  (void)!::write(STDOUT_FILENO, back.data(), back.size());  // nothing is left to be done where that fails
}

void print(std::string_view text) { write_all(STDOUT_FILENO, text, "cannot write to stdout"); }

void show(std::string_view text) {
  try {
    print(text);
  } catch (const Error&) {
    pollfd out{STDOUT_FILENO, POLLOUT, 0};
    if (::poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0) {
      ::signal(SIGPIPE, SIG_DFL);  // we may have been started with it ignored
      raise_unblocked(SIGPIPE);
    }
    throw;
  }
}

}  // namespace rlock::cli
