#pragma once

#include <sys/types.h>

/// The session's terminal, /dev/tty or else descriptor 0, and which process group may read from it.
namespace rlock::run::terminal {

/// Whether the command should get the terminal: rlock's group has it, and stdout is not a pipe, since in `rlock ... |
/// less` the pager reads from it. False where there is no terminal, as under cron and systemd. Where SIGTTIN is
/// ignored, as interactive shells do in $(...), a pipe does not matter: without the terminal a read would fail instead
/// of stopping the command, and we could not lend it later.
bool is_ours();

/// Whether our group has the session's terminal, wherever our standard input comes from.
bool has_our_group();

/// Makes a group the terminal's foreground group. Returns false where that cannot be done.
bool give_to(pid_t group);

/// Returns it to rlock's group, if `borrower`, a group that was given it, still has it.
void take_back_from(pid_t borrower);

/// Stops rlock's whole group, as Ctrl-Z would have if the command had not had the terminal, and returns when it is
/// continued. Returns false at once if no shell is left that could continue it (an orphaned process group).
bool stop_ourselves();

/// Sends INT or QUIT to rlock's whole group, as the terminal would have if the command had not had it: a shell abandons
/// its script only when it gets the signal itself.
void interrupt_ourselves(int number);

/// Whether it has hung up, and the kernel has sent SIGHUP directly to the group that was given it. To be asked only
/// while a group has it.
bool has_hung_up_on_borrower();

}  // namespace rlock::run::terminal
