#include "base/error.h"
#include "cli/commands.h"

namespace rlock::cli {

int log(const Settings&) { throw Error{ExitCode::internal, "log: this build has no history to show"}; }

}  // namespace rlock::cli
