#include "run/verdict.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>

#include "base/escape.h"

namespace rlock::run {
namespace {

ExitCode exit_code_of_exec(int error_number) {
  if (error_number == ENOENT)
    return ExitCode::not_found;
  return error_number == EAGAIN || error_number == ENOMEM ? ExitCode::os : ExitCode::not_executable;
}

/// Whether the signal that ended the command was typed, and reached it directly or through us.
bool was_typed(const Evidence& evidence, int signal) {
  return (signal == SIGINT || signal == SIGQUIT) && (evidence.typed || evidence.news->told_by_terminal);
}

Verdict judge_ended(const Evidence& evidence, int wait_status) {
  Verdict verdict{.outcome = Outcome::completed};
  if (WIFSIGNALED(wait_status))
    verdict.command_signal = WTERMSIG(wait_status);
  verdict.command_status =
      verdict.command_signal ? static_cast<int>(killed_by(*verdict.command_signal)) : WEXITSTATUS(wait_status);
  verdict.exit_status = *verdict.command_status;
  if (evidence.loss || evidence.news->cause == Cause::lease) {
    verdict.outcome = evidence.loss.value_or(Outcome::lost);
    if (evidence.stop_when_lost)
      verdict.exit_status = static_cast<int>(ExitCode::lost);
  } else if (evidence.news->cause == Cause::runtime) {
    verdict.outcome = Outcome::timeout;
    verdict.exit_status = static_cast<int>(ExitCode::timeout);
  } else {
    if (evidence.interrupted || evidence.news->told_by_terminal)
      verdict.outcome = Outcome::interrupted;
    if (verdict.command_signal && was_typed(evidence, *verdict.command_signal))
      verdict.die_of = *verdict.command_signal;
  }
  return verdict;
}

}  // namespace

Verdict judge(const Evidence& evidence) {
  const Verdict lost{.outcome = evidence.loss.value_or(Outcome::lost), .exit_status = static_cast<int>(ExitCode::lost)};
  Verdict lost_before_start = lost;
  lost_before_start.is_unstarted = true;
  if (!evidence.news && evidence.loss)
    return lost;
  if (!evidence.news)  // the kernel kills the command together with its parent, the guard
    return {.command_status = static_cast<int>(killed_by(SIGKILL)), .command_signal = SIGKILL};
  switch (evidence.news->kind) {
    case News::Kind::too_late:
      return lost_before_start;
    case News::Kind::silent:
      return evidence.loss ? lost_before_start : Verdict{};
    case News::Kind::not_started:
      return {.exit_status = static_cast<int>(exit_code_of_exec(evidence.news->value))};
    case News::Kind::failed:
    case News::Kind::blind:
      return {.exit_status = static_cast<int>(ExitCode::os)};
    case News::Kind::ended:
      return judge_ended(evidence, evidence.news->value);
    case News::Kind::started:
    case News::Kind::lingering:
    case News::Kind::killing:
    case News::Kind::surviving:
    case News::Kind::lent:
    case News::Kind::stopping:
    case News::Kind::stopped:
      break;
  }
  return {};
}

Verdict judge(const lock::Conflict& conflict, ExitCode when_held) {
  using Kind = lock::Conflict::Kind;
  if (conflict.kind == Kind::done)
    return {.outcome = Outcome::done, .exit_status = 0};
  return {.outcome = conflict.kind == Kind::superseded ? Outcome::superseded : Outcome::conflict,
          .exit_status = static_cast<int>(when_held)};
}

lock::End end_for_history(const Verdict& verdict, std::string_view by) {
  lock::End end{.status = verdict.command_status, .is_excused = verdict.outcome == Outcome::interrupted};
  if (verdict.outcome == Outcome::forced)
    return {.word = "evicted," + percent_encode(by)};
  if (verdict.outcome == Outcome::replaced)
    return {.word = "replaced," + percent_encode(by)};
  if (verdict.is_unstarted)
    return {.is_excused = true, .word = "lost"};
  if (verdict.outcome == Outcome::timeout) {
    end.word = "timeout";
  } else if (verdict.outcome == Outcome::lost) {
    end.word = "lost";
  } else if (verdict.outcome == Outcome::interrupted && verdict.command_status == 0) {
    end.word = "interrupted";
  } else if (verdict.command_signal) {
    end.word = fmt::format("signal:{}", *verdict.command_signal);
  } else if (!verdict.command_status) {
    end.status = verdict.exit_status;
    end.is_excused = true;  // the command was not started: another machine may be able to
  }
  return end;
}

}  // namespace rlock::run
