#pragma once

#include <string>

#include "base/log.h"

namespace rlock::run {

/// Errors that are printed as they happen. The last one is kept for the report.
class Complaints {
 public:
  /// The log must outlive this object.
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
