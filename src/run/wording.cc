#include "run/wording.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/signals.h"
#include "base/timestamp.h"

namespace rlock::run {
namespace {

/// What it means for --once and --once-per that Redis could not be told of a success.
std::string describe_forgotten(const lock::Claim& claim, const Verdict& verdict) {
  const bool has_done_it = verdict.outcome == Outcome::completed && verdict.command_status == 0;
  if (!has_done_it || !(claim.once || claim.once_per || claim.calendar_slot))
    return "";
  return fmt::format("; that {} done could not be recorded, so it may be run again",
                     claim.calendar_slot ? claim.calendar_slot->name + " is"
                     : claim.once        ? *claim.once + " is"
                                         : "it was");
}

/// That of a script, which its first line names. A file with Windows line ends names one that ends with "\r".
std::string describe_missing_interpreter(const std::string& script) {
  std::string line;
  std::getline(std::ifstream{script}, line);
  std::string_view name{line};
  name.remove_prefix(std::min(name.find_first_not_of("#! \t"), name.size()));
  name = name.substr(0, name.find_first_of(" \t"));
  return line.starts_with("#!") ? fmt::format("its interpreter '{}' is missing", name)
                                : "the interpreter that it names is missing";
}

}  // namespace

std::string describe_start(const Plan& plan, const lock::Lease& lease) {
  const Command& command = plan.command;
  std::string text = "starting the command";
  if (command.max_runtime)
    text += " for at most " + format_duration(*command.max_runtime);
  const std::string& name = plan.name.text();
  const std::string term = format_duration(time_until(lease.term_at()));
  if (plan.on_lost == OnLost::warn)
    return text + fmt::format("; {} must be renewed within {}", name, term);
  return text + fmt::format("; unless {} is renewed, the command gets {} in {} and KILL in {}",
                            name,
                            signal_name(command.first_signal),
                            term,
                            format_duration(time_until(lease.kill_at())));
}

std::string describe_stop(Cause cause, const Plan& plan) {
  const bool has_ended = cause == Cause::signalled || cause == Cause::at_end;
  const Milliseconds after = plan.lease.kill_after;
  return fmt::format("{}; KILL follows {}",
                     has_ended ? "the command has ended; stopping what it left running" : "telling the command to stop",
                     after.count() == 0 ? "at once" : "within " + format_duration(after));
}

std::optional<std::string> describe_signal(const Verdict& verdict, const Plan& plan) {
  const auto signal = verdict.command_signal;
  const bool ends_quietly = signal == SIGINT || signal == SIGPIPE || verdict.die_of != 0;
  const bool is_told = verdict.outcome == Outcome::interrupted ? signal == SIGTERM || signal == SIGKILL
                                                               : verdict.outcome != Outcome::completed;
  if (!signal || ends_quietly || is_told)
    return std::nullopt;
  return fmt::format("{}: the command was killed by {}", plan.name.text(), signal_name(*signal));
}

std::string describe_attempt(const Plan& plan, const lock::Release& release) {
  const lock::Claim& claim = plan.claim;
  const std::string& name = plan.name.text();
  const std::string id = claim.calendar_slot ? claim.calendar_slot->name : claim.once.value_or("");
  const std::string work = id.empty() ? "" : " for " + id;
  const int most = claim.attempts.value_or(0);
  if (release.failed_attempts >= most) {
    const std::string_view several = release.failed_attempts == 1 ? "" : "s";
    const std::string_view until = claim.once_per ? " for now" : "";
    return fmt::format(
        "{}: {} attempt{}{} failed, and no more are made{}", name, release.failed_attempts, several, work, until);
  }
  const std::string next =
      release.cooling.count() == 0 ? "" : "; the next may begin in " + format_duration(release.cooling);
  return fmt::format("{}: attempt {} of {}{} failed{}", name, release.failed_attempts, most, work, next);
}

std::string describe_failure(const News& news, const Plan& plan) {
  const char* reason = ::strerror(news.value);
  if (news.kind == News::Kind::blind)
    return "/proc is missing or shows another PID namespace, so the command's processes could not be found and killed: "
           "mount it (mount -t proc proc /proc)";
  if (news.kind == News::Kind::failed)
    return fmt::format("cannot start a process for the command: {}", reason);
  if (news.kind == News::Kind::silent)
    return fmt::format("{}: the guard process did not answer; the command was not started", plan.name.text());
  if (news.kind == News::Kind::too_late)
    return fmt::format("lost {} before its command was started", plan.name.text());
  if (news.kind == News::Kind::not_started) {
    const bool is_there = news.value == ENOENT && ::access(plan.command.file.c_str(), F_OK) == 0;
    return fmt::format("cannot run {}: {}",
                       plan.command.argv.front(),
                       is_there ? describe_missing_interpreter(plan.command.file) : reason);
  }
  return "the guard process gave up before the command was started";
}

std::string describe_failed_release(const Plan& plan,
                                    const lock::Lease& lease,
                                    const Verdict& verdict,
                                    const Error& why) {
  const auto left = std::max(time_until(lease.free_at()), Milliseconds{0});
  const std::string fate = left.count() == 0 ? "but its lease has ended, so it is free"
                                             : fmt::format("it stays taken until its lease ends, in {} at {}",
                                                           format_duration(left),
                                                           format_local(wall_now() + left));
  return fmt::format(
      "could not release {}: {}; {}{}", plan.name.text(), why.what(), fate, describe_forgotten(plan.claim, verdict));
}

std::string describe(const Survivors& survivors) {
  std::string pids;
  for (const pid_t pid : survivors.some) {
    if (pid > 0)
      pids += fmt::format("{}{}", pids.empty() ? " (pid " : ", ", pid);
  }
  if (!pids.empty())
    pids += static_cast<std::size_t>(survivors.count) > survivors.some.size() ? ", ...)" : ")";
  return fmt::format("{} process{}{}", survivors.count, survivors.count == 1 ? "" : "es", pids);
}

}  // namespace rlock::run
