#pragma once

#include <sys/types.h>

namespace rlock::run {

/// The terminal, on descriptor 0 or else the session's /dev/tty, and which process group may read from it.
class Terminal {
 public:
  /// Whether the command should get the terminal: rlock's group has it, and stdout is not a pipe, since in `rlock ... |
  /// less` the pager reads from it. False where there is no terminal, as under cron and systemd. Where SIGTTIN is
  /// ignored, as interactive shells do in $(...), a pipe does not matter: without the terminal a read would fail
  /// instead of stopping the command, and we could not lend it later.
  static bool is_ours();

  /// Whether our group has the session's terminal, wherever our standard input comes from.
  static bool has_our_group();

  /// Makes a group the terminal's foreground group. Returns false where that cannot be done.
  static bool give_to(pid_t group);

  /// Notes that the command's group has been given the terminal.
  void lend_to(pid_t group) { borrower_ = group; }
  bool is_lent() const { return borrower_ > 0; }

  /// Returns it to rlock's group, if the borrower still has it.
  void take_back();

  /// Stops rlock's whole group, as Ctrl-Z would have if the command had not had the terminal, and returns when it is
  /// continued. Returns false at once if no shell is left that could continue it (an orphaned process group).
  static bool stop_ourselves();

  /// Sends INT or QUIT to rlock's whole group, as the terminal would have if the command had not had it: a shell
  /// abandons its script only when it gets the signal itself.
  static void interrupt_ourselves(int number);

  /// Whether the terminal has hung up and the kernel has sent SIGHUP to the borrower directly.
  bool hung_up() const;

 private:
  pid_t borrower_ = 0;
};

}  // namespace rlock::run
