#pragma once

#include <optional>

#include "base/exit_code.h"
#include "run/messages.h"

namespace rlock::run {

enum class Outcome {
  completed,
  done,  // --once: somebody had done it
  conflict,
  superseded,  // --latest: a newer one has the place
  lost,
  evicted,   // released by force
  replaced,  // --replace
  timeout,
  error,
  interrupted,
};

/// How a run ended that had started: the facts.
struct Ending {
  std::optional<News> news;     // not_started, failed or ended; nothing when the guard was killed
  std::optional<Outcome> loss;  // lost, evicted or replaced, while the command ran
  bool stop_when_lost = true;
  bool interrupted = false;   // rlock was told to stop, and passed it on
  bool typed = false;         // a signal that rlock got from the terminal itself, and passed on
  bool had_terminal = false;  // the command did
};

/// What they mean.
struct Verdict {
  Outcome outcome = Outcome::error;
  int exit_status = static_cast<int>(ExitCode::internal);
  std::optional<int> command_status{};  // as a shell would report it
  std::optional<int> command_signal{};  // that ended it
  int die_of = 0;                       // a signal of the terminal, which rlock is to die of as its command did
};

Verdict judge(const Ending& ending);

}  // namespace rlock::run
