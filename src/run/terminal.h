#pragma once

#include <sys/types.h>

namespace rlock::run {

/// The terminal on descriptor 0, or else the session's, /dev/tty, and who may read from it.
class Terminal {
 public:
  /// Whether the command should get the terminal: rlock's group has it, and stdout is not a pipe (in `rlock ... | less`
  /// it is the pager's). False where there is no terminal: cron, systemd, ssh without one. Where SIGTTIN is ignored, as
  /// an interactive shell has it in $(...), it should get it in any case, since reading would fail and not stop it.
  static bool is_ours();

  /// Whether our group has the session's terminal, wherever our standard input comes from.
  static bool has_our_group();

  /// Makes a group the terminal's foreground group. False where that cannot be done.
  static bool give_to(pid_t group);

  /// The command's group has been given the terminal.
  void lend_to(pid_t group) { borrower_ = group; }
  bool is_lent() const { return borrower_ > 0; }

  /// Gives it back to rlock's group, if the borrower still has it.
  void take_back();

  /// Stops rlock's whole group, as Ctrl-Z would have if the command had not had the terminal; returns when continued.
  /// False if that cannot be done: no shell is left that could continue it (an orphaned process group).
  static bool stop_ourselves();

  /// Sends INT or QUIT to rlock's whole group, as the terminal would have if the command had not had it: a shell stops
  /// its script only when it was told itself.
  static void interrupt_ourselves(int number);

  /// Whether the terminal is gone, and its hang-up sent to the borrower directly.
  bool hung_up() const;

 private:
  pid_t borrower_ = 0;
};

}  // namespace rlock::run
