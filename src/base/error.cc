#include "base/error.h"

#include <cstring>

namespace rlock {

Error os_error(const std::string& what, int error_number) {
  return {ExitCode::os, what + ": " + ::strerror(error_number)};
}

}  // namespace rlock
