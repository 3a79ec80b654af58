#pragma once

#include <string>

#include "base/log.h"

namespace rlock::run {

/// Errors that are told as they happen, of which the last is the one that a report keeps.
class Complaints {
 public:
  /// The log stays the caller's.
  explicit Complaints(const Log& log) : log_(&log) {}

  void add(std::string message) {
    log_->error(message);
    last_ = std::move(message);
  }
  const std::string& last() const { return last_; }

 private:
  const Log* log_;
  std::string last_;
};

}  // namespace rlock::run
