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
#include "cli/screen.h"

namespace {

using namespace rlock;

ExitCode execute(int argc, char** argv, const Log& log) {
  ensure_standard_descriptors();
  if (argc > 1 && argv[1] == std::string_view{"__complete"}) {
    cli::print(cli::complete({argv + 2, argv + argc}));
    return ExitCode::ok;
  }
  cli::Invocation invocation = cli::parse_arguments(argc, argv);
  cli::blot_passwords(argc, argv);
  ::prctl(PR_SET_DUMPABLE, 0);  // neither the command nor a core file may reveal the password in our environment
  if (invocation.fault) {
    log.usage(*invocation.fault, *invocation.text);
    return ExitCode::usage;
  }
  if (!invocation.text)
    return cli::dispatch(std::move(invocation));
  cli::print(*invocation.text);
  return ExitCode::ok;
}

}  // namespace

int main(int argc, char** argv) {
  const Log log{Verbosity::normal};
  ExitCode code = ExitCode::internal;
  try {
    code = execute(argc, argv, log);
  } catch (const Error& error) {
    log.error(error.what());
    code = error.code();
  } catch (const std::bad_alloc&) {
    log.error("out of memory");
    code = ExitCode::os;
  } catch (const std::exception& error) {
    log.error(error.what());
  }
  return static_cast<int>(code);
}
