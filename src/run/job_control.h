#pragma once

#include <sys/types.h>

#include "run/messages.h"
#include "run/terminal.h"

namespace rlock::run {

/// The keeper's part in job control: when the command gets the terminal, and when rlock stops with it, so that the
/// shell has its prompt again.
class JobControl {
 public:
  /// The line to the guard stays the caller's.
  explicit JobControl(const Line& guard) : guard_(&guard) {}

  bool has_lent_terminal() const { return terminal_.is_lent(); }
  bool hung_up() const { return terminal_.hung_up(); }
  void take_back_terminal() { terminal_.take_back(); }

  /// What is told by the guard, and by our signals.
  void command_got_terminal(pid_t group) { terminal_.lend_to(group); }
  void command_stopped(int number) { stopped_by_ = number; }
  void we_were_continued() { continued_ = true; }

  enum class Task {
    none,
    suspend,  // the command was stopped, and the shell waits for us to stop too
    resume,   // we were continued
  };
  /// What is to be done now. A command that was stopped because it wants the terminal, which is ours to lend, gets it.
  Task next();

  /// Gives the terminal back and stops until somebody continues us.
  void suspend();
  /// Lets the command go on.
  void resume();

 private:
  bool lend(int stopped_by);

  const Line* guard_;
  Terminal terminal_;
  int stopped_by_ = 0;      // the signal that stopped the command, until it is dealt with
  bool continued_ = false;  // we were, and have not dealt with it
  bool offered_ = false;    // the terminal, to a command that has not got it since
};

}  // namespace rlock::run
