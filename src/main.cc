#include <sys/prctl.h>

#include <exception>
#include <new>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/session.h"

namespace {

using namespace rlock;

int dispatch(cli::Invocation invocation) {
  switch (invocation.subcommand) {
    case cli::Subcommand::run:
      return cli::run(invocation.settings, std::move(invocation.command));
    case cli::Subcommand::acquire:
      return cli::acquire(invocation.settings);
    case cli::Subcommand::renew:
      return cli::renew(invocation.settings);
    case cli::Subcommand::release:
      return cli::release(invocation.settings);
    case cli::Subcommand::status:
      return cli::status(invocation.settings);
    case cli::Subcommand::log:
      return cli::log(invocation.settings);
    case cli::Subcommand::check:
      return cli::check(invocation.settings);
  }
  return static_cast<int>(ExitCode::internal);
}

}  // namespace

int main(int argc, char** argv) {
  const Log log{Verbosity::normal};
  try {
    ensure_standard_descriptors();
    if (argc > 1 && argv[1] == std::string_view{"__complete"}) {
      cli::print(cli::complete({argv + 2, argv + argc}));
      return 0;
    }
    cli::Invocation invocation = cli::parse_arguments(argc, argv);
    cli::blot_passwords(argc, argv);
    ::prctl(PR_SET_DUMPABLE, 0);  // neither the command nor a core file may reveal the password in our environment
    if (invocation.fault) {
      log.usage(*invocation.fault, *invocation.text);
      return static_cast<int>(ExitCode::usage);
    }
    if (!invocation.text)
      return dispatch(std::move(invocation));
    cli::print(*invocation.text);
    return 0;
  } catch (const Error& error) {
    log.error(error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    log.error("out of memory");
    return static_cast<int>(ExitCode::os);
  } catch (const std::exception& error) {
    log.error(error.what());
    return static_cast<int>(ExitCode::internal);
  }
}
