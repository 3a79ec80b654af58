#pragma once

#include <sys/types.h>

#include <string>

namespace rlock::cli {

/// The name of the program or script that a process runs, as people would look for it: "backup.sh" for `sh -e
/// /opt/backup.sh --full`, "make" for make. Empty where there is no such process, or we may not examine it.
std::string script_name(pid_t process);

}  // namespace rlock::cli
