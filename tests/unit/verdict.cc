#include "run/verdict.h"

#include <signal.h>

#include "expect.h"

namespace rlock::unit {
namespace {

using run::Cause;
using run::Evidence;
using run::judge;
using run::News;
using run::Outcome;

constexpr int exited(int code) { return code << 8; }  // as wait(2) has it

Evidence ended(int wait_status, Cause cause = Cause::none) {
  Evidence evidence;
  evidence.news = News{.kind = News::Kind::ended, .value = wait_status, .cause = cause};
  return evidence;
}

void test_codes() {
  for (int code = 0; code < 256; ++code) {
    const auto verdict = judge(ended(exited(code)));
    const bool as_is = verdict.outcome == Outcome::completed && verdict.exit_status == code &&
                       verdict.command_status == code && !verdict.command_signal && verdict.die_of == 0;
    expect(as_is, "rlock exits with the command's status", std::to_string(code));
    const auto lost = judge(ended(exited(code), Cause::lease));
    expect(lost.outcome == Outcome::lost && lost.exit_status == 76,
           "a lost lease outranks the status",
           std::to_string(code));
    const auto late = judge(ended(exited(code), Cause::runtime));
    expect(late.outcome == Outcome::timeout && late.exit_status == 124, "so does --max-runtime", std::to_string(code));
  }
}

void test_signals() {
  for (int number = 1; number <= 64; ++number) {
    for (const int core : {0, 0x80}) {
      const auto verdict = judge(ended(number | core));
      const bool mapped =
          verdict.exit_status == 128 + number && verdict.command_signal == number && verdict.die_of == 0;
      expect(mapped, "a command that a signal ended gives 128 and its number", std::to_string(number));
    }
    Evidence passed_on = ended(number);
    passed_on.interrupted = true;
    expect(judge(passed_on).outcome == Outcome::interrupted, "a signal that we passed on counts as an interruption");
  }
}

}  // namespace

void test_verdicts() {
  test_codes();
  test_signals();
  Evidence warned = ended(exited(3));
  warned.loss = Outcome::lost;
  warned.stop_when_lost = false;
  expect(judge(warned).outcome == Outcome::lost && judge(warned).exit_status == 3, "--on-lost warn keeps the status");
  Evidence failed;
  expect_same(judge(failed).exit_status, 70, "a guard that was killed is an internal error");
  expect_same(judge(failed).command_signal.value_or(0), SIGKILL, "the kernel has killed its command");
  const auto not_started = [&](int error_number) {
    failed.news = News{.kind = News::Kind::not_started, .value = error_number};
    return judge(failed).exit_status;
  };
  expect_same(not_started(ENOENT), 127, "a command that does not exist gives 127");
  expect_same(not_started(EACCES), 126, "a command that may not be executed gives 126");
  expect_same(not_started(EISDIR), 126, "a directory gives 126");
  expect_same(not_started(ENOMEM), 71, "a lack of memory gives 71");
  Evidence late;
  late.news = News{.kind = News::Kind::too_late};
  const lock::End end = run::end_for_history(judge(late), "");
  expect(judge(late).outcome == Outcome::lost && judge(late).exit_status == 76, "a start that comes too late gives 76");
  expect(end.is_excused && !end.status && end.word == "lost", "and is no failure of the command");
  late.news = News{.kind = News::Kind::silent};
  late.loss = Outcome::forced;
  expect(judge(late).outcome == Outcome::forced && judge(late).exit_status == 76,
         "an eviction before the start outranks a guard that does not answer");
}

}  // namespace rlock::unit
