#pragma once

#include <string>
#include <variant>

#include "lock/answer.h"

namespace rlock::lock {

/// Why the lock could not be had, or is not needed, as the part of a message after the lock's name.
struct Conflict {
  enum class Kind {
    held,        // or the wait ran out
    full,        // the queue has as many waiters as --max-waiting allows
    superseded,  // by a newer waiter (--latest, --replace)
    done,        // the work has been done already (--once, --once-per)
  };
  Kind kind = Kind::held;
  std::string message;
};
using Taken = std::variant<Granted, Conflict>;

}  // namespace rlock::lock
