#pragma once

#include <optional>
#include <string_view>

#include "base/error.h"
#include "lock/lock.h"
#include "lock/taker.h"
#include "run/messages.h"

namespace rlock::run {

enum class Outcome {
  completed,
  done,  // --once, --once-per: the work had already been done
  conflict,
  superseded,  // --latest, --replace: a newer waiter has taken our place
  lost,
  forced,    // evicted by release --force
  replaced,  // evicted by run --replace
  timeout,
  error,
  interrupted,
};

/// The facts about the end of a run whose lock was granted.
struct Evidence {
  std::optional<News> news;     // the guard's last, or ours for a guard that is silent; none if it was killed
  std::optional<Outcome> loss;  // how the lock was lost while the command ran, if it was
  bool stop_when_lost = true;
  bool interrupted = false;  // rlock passed on TERM or INT, or just before the end another that tells_to_stop()
  int passed_on = 0;         // the last signal of any kind that it passed on
  bool typed = false;        // rlock passed on a Ctrl-C or Ctrl-\ of the terminal
};

/// What those facts mean for the exit status and the report.
struct Verdict {
  Outcome outcome = Outcome::error;
  int exit_status = static_cast<int>(ExitCode::internal);
  std::optional<int> command_status{};  // as a shell would report it
  std::optional<int> command_signal{};  // the signal that ended it
  int die_of = 0;  // the terminal's signal that ended the command, or came after it, and must end rlock too; or 0
  bool is_unstarted = false;  // the lock was lost before the command was started
};

Verdict judge(const Evidence& evidence);
/// The same for a lock that was not granted; `when_held` is the exit status for one that somebody holds.
Verdict judge(const lock::Conflict& conflict, ExitCode when_held);

/// How the run ended, as the lock's history on Redis keeps it. A command that was told to stop has not done its work,
/// even if it exits with 0. `by`: who made us give up the lock, if somebody did.
lock::End end_for_history(const Verdict& verdict, std::string_view by);

}  // namespace rlock::run
