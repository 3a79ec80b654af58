#pragma once

#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/timestamp.h"
#include "run/keeper.h"

namespace rlock::run {

/// Where to write the report, and what only the command line knows.
struct ReportOptions {
  std::string file;
  std::string key;     // empty when it is not known
  bool slots = false;  // --slots is above 1, so that holders have slot numbers
};

/// Writes the file of `run --report FILE`: one JSON object that says how the run ended. A regular file is replaced
/// atomically, so that a reader finds either the old report or the new one, and never half of one; a pipe or device is
/// written to.
class Report {
 public:
  /// Starts the clock of the report. Throws Error{config} for a file that cannot be written, before the work is done
  /// rather than after it. The log must outlive the report.
  Report(ReportOptions options, const Log& log);

  /// A failure to write is only logged: the command has run, and its status is what counts.
  void write(const Result& result) const;
  /// Reports a run that failed before its command was started.
  void write(const Error& error) const;

 private:
  std::string temporary() const;
  void keep_owner_and_mode(const Fd& fd) const;
  void write_in_place(const std::string& text) const;
  void replace_file(const std::string& text) const;

  ReportOptions options_;
  std::string file_;  // with symbolic links resolved, so that their target is replaced and not the link
  const Log* log_;
  Fd device_;  // open when the file is not a regular one
  WallTime started_at_;
  BootClock::time_point begun_ = BootClock::now();
};

}  // namespace rlock::run
