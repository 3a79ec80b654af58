#pragma once

#include <sys/types.h>

#include "run/messages.h"
#include "run/terminal.h"

namespace rlock::run {

/// The keeper's part in job control: decides when the command gets the terminal, and when rlock stops together with the
/// command, so that the shell gets its prompt back.
class JobControl {
 public:
  /// The line to the guard must outlive this object.
  explicit JobControl(const Line& guard) : guard_(&guard) {}

  bool has_lent_terminal() const { return borrower_ > 0; }
  /// Whether the command has got SIGHUP from the terminal itself.
  bool hung_up() const { return has_lent_terminal() && terminal::has_hung_up_on_borrower(); }
  void take_back_terminal();

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

  const Line* guard_;
  pid_t borrower_ = 0;      // the command's group while it has the terminal
  int stopped_by_ = 0;      // the signal that stopped the command, until next() has handled it
  bool continued_ = false;  // we were continued, and resume() has not been called since
  bool offered_ = false;    // the command was offered the terminal and has not taken it since
};

}  // namespace rlock::run
