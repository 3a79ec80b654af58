#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>

#include "run/messages.h"

namespace rlock::run {

/// The session's terminal, /dev/tty or else descriptor 0, and which process group may read from it.
namespace terminal {

/// Whether the command should get the terminal: rlock's group has it, and stdout is not a pipe, since in `rlock ... |
/// less` the pager reads from it. False where there is no terminal, as under cron and systemd. Where SIGTTIN is
/// ignored, as interactive shells do in $(...), a pipe does not matter: without the terminal a read would fail instead
/// of stopping the command, and we could not lend it later. False also in a PID namespace that does not show our group,
/// since it could not be given back there.
bool is_ours();

/// Whether our group has the session's terminal, wherever our standard input comes from.
bool has_our_group();

/// Makes a group the terminal's foreground group. Returns false where that cannot be done.
bool give_to(pid_t group);

/// Returns it to `owner`, if `borrower`, a group that was given it, still has it, or has given it to a group of which
/// nobody is left. With modes, from a command that is being killed: also from any other group of our descendants; the
/// terminal gets these modes then.
void take_back_from(pid_t borrower, pid_t owner, const std::optional<TerminalModes>& modes);

/// Nothing where there is no terminal.
std::optional<TerminalModes> modes();

/// Whether Ctrl-Z stops our group, found out by a child. It does not where no shell could continue us (an orphaned
/// process group), where SIGTSTP is ignored, or for process 1.
bool can_stop_ourselves();

/// Stops rlock's whole group, as Ctrl-Z would have if the command had not had the terminal, and returns when it is
/// continued.
void stop_ourselves();

/// Sends INT, QUIT or HUP to rlock's whole group, as the terminal would have if the command had not had it: a shell
/// abandons its script only when it gets the signal itself.
void signal_ourselves(int number);

/// Whether it has hung up, and the kernel sends SIGHUP directly to the group that was given it, now or when the
/// session's leader has ended. To be asked only while a group has it.
bool has_hung_up_on_borrower();

/// Whether the session's leader has ended.
bool is_without_leader();

}  // namespace terminal

/// The keeper's part in job control: decides when the command gets the terminal, and when rlock stops together with the
/// command, so that the shell gets its prompt back.
class JobControl {
 public:
  /// The line to the guard must outlive this object.
  explicit JobControl(const Line& guard) : guard_(&guard) {}

  bool has_lent_terminal() const { return borrower_ > 0; }
  /// Whether the terminal has hung up: the kernel tells the command, now or when the session's leader has ended.
  bool hung_up() const { return has_lent_terminal() && terminal::has_hung_up_on_borrower(); }
  /// Whether the command may have the terminal from its start on, or from when we continue it.
  bool may_lend();
  /// The terminal's modes before it was lent; nothing before that.
  const std::optional<TerminalModes>& modes() const { return modes_; }
  enum class Modes { as_left, as_lent };
  /// Also from a guard that has died, or been stopped, before it could tell that the command has it.
  void take_back_terminal(Modes modes = Modes::as_left);

  /// Events, as the guard's news and our own signals report them.
  void command_got_terminal(pid_t group) { borrower_ = group; }
  void command_stopped(int number) { stopped_by_ = number; }
  void we_were_continued() { continued_ = true; }

  enum class Task {
    none,
    suspend,  // the command was stopped, and the shell waits for us to stop too
    resume,   // we were continued
  };
  /// What the keeper must do now. A command that was stopped because it wants the terminal is given it here, if it is
  /// ours to lend.
  Task next();

  /// Takes the terminal back and stops until somebody continues us.
  void suspend();
  /// Continues the command.
  void resume();

 private:
  bool lend(int stopped_by);
  static bool may_suspend(int stopped_by);
  Task stay(int stopped_by);

  const Line* guard_;
  std::optional<TerminalModes> modes_;
  bool command_may_have_it_ = false;  // even if the guard has not told
  pid_t borrower_ = 0;                // the command's group while it has the terminal
  int stopped_by_ = 0;                // the signal that stopped the command, until next() has handled it
  bool continued_ = false;            // we were continued, and resume() has not been called since
  bool offered_ = false;              // the command was offered the terminal and has not taken it since
};

}  // namespace rlock::run
