#pragma once

#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/timestamp.h"
#include "run/keeper.h"

namespace rlock::run {

/// What is reported, and where to.
struct ReportOptions {
  std::string file;
  std::string key;     // empty: not known
  bool slots = false;  // the holders are numbered
};

/// What `run --report FILE` leaves behind: one JSON object that says how it ended. A regular file is replaced in one
/// step, so that whoever reads it finds the old report or the new one, and none of ours after a crash; a pipe or device
/// is written to.
class Report {
 public:
  /// Begins the time that is reported. Throws Error{config} for a file that cannot be made: better now than when a
  /// night's work is done.
  Report(ReportOptions options, const Log& log);

  /// Failing is logged: the command has run, and its status counts.
  void write(const Result& result) const;
  /// Of a run that failed before its command was started.
  void write(const Error& error) const;

 private:
  std::string temporary() const;
  void keep_owner_and_mode(const Fd& fd) const;
  void replace_file(const std::string& text) const;

  ReportOptions options_;
  std::string file_;  // with symbolic links followed: they stay, what they lead to is replaced
  const Log* log_;
  Fd device_;  // where it is not a regular file
  WallTime started_at_;
  BootClock::time_point begun_ = BootClock::now();
};

}  // namespace rlock::run
