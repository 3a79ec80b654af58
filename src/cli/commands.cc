#include "cli/commands.h"

#include <utility>

#include "base/error.h"

namespace rlock::cli {

ExitCode dispatch(Invocation invocation) {
  switch (invocation.subcommand) {
    case Subcommand::run:
      return run(invocation.settings, std::move(invocation.command));
    case Subcommand::acquire:
      return acquire(invocation.settings);
    case Subcommand::renew:
      return renew(invocation.settings);
    case Subcommand::release:
      return release(invocation.settings);
    case Subcommand::status:
      return status(invocation.settings);
    case Subcommand::log:
      return log(invocation.settings);
    case Subcommand::check:
      return check(invocation.settings);
  }
  throw Error{ExitCode::internal, "a subcommand without a function"};
}

}  // namespace rlock::cli
