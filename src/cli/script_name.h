#pragma once

#include <sys/types.h>

#include <string>

namespace rlock::cli {

/// What a process runs, for people who look for it: "backup.sh" of `sh -e /opt/backup.sh --full`, "make" of make.
/// Empty where there is no such process, or nobody may look.
std::string script_name(pid_t process);

}  // namespace rlock::cli
