#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "cli/args.h"
#include "cli/complete.h"
#include "cli/screen.h"
#include "lock/scripts.h"

namespace {

using namespace rlock;

/// For tests and clients in other languages: what rlock sends for a verb.
ExitCode print_script(std::string_view verb) {
  for (const lock::Script* script : lock::scripts::all) {
    if (script->name != verb)
      continue;
    cli::print(script->source);
    return ExitCode::ok;
  }
  return ExitCode::usage;
}

ExitCode execute(int argc, char** argv, const Log& log) {
  // We read files and run commands that our caller names, so with somebody else's rights the caller could do anything.
  if (::getauxval(AT_UID) != ::getauxval(AT_EUID) || ::getauxval(AT_GID) != ::getauxval(AT_EGID))
    throw Error{ExitCode::os, "rlock must not be set-uid or set-gid; let sudo run it instead"};
  ensure_standard_descriptors();
  // Some callers leave SIGCHLD ignored, in which case the kernel would discard our children's statuses.
  const bool ignores_sigchld = ::signal(SIGCHLD, SIG_DFL) == SIG_IGN;
  if (argc > 1 && argv[1] == std::string_view{"__complete"}) {
    cli::print(cli::complete({argv + 2, argv + argc}));
    return ExitCode::ok;
  }
  if (argc == 3 && argv[1] == std::string_view{"__script"})
    return print_script(argv[2]);
  cli::Invocation invocation = cli::parse_arguments(argc, argv);
  invocation.settings.ignores_sigchld = ignores_sigchld;
  cli::blot_passwords(argc, argv);
  ::prctl(PR_SET_DUMPABLE, 0);  // neither the command nor a core file may reveal the password in our environment
  if (invocation.fault) {
    log.usage(*invocation.fault, *invocation.text);
    return ExitCode::usage;
  }
  if (!invocation.text)
    return invocation.subcommand->call(invocation.settings);
  cli::show(*invocation.text);
  return ExitCode::ok;
}

/// Makes `eval "$(rlock acquire ...)" || exit` exit with our status, since eval ignores the status of a substitution.
/// `eval "$(rlock acquire ... || echo exit $?)"` is better, as it also ends a script that finds no rlock.
/// Without the quotes, which may be forgotten, the two are one line: hence the semicolon.
void tell_shell(ExitCode code) {
  try {
    cli::print("(exit " + std::to_string(static_cast<int>(code)) + ");\n");
  } catch (const std::exception&) {
    // Nobody reads our output, so nobody evaluates it.
  }
}

/// Nothing is buffered, and the kernel frees what we have faster than exit handlers and destructors do.
[[noreturn]] void leave(ExitCode code) {
#if defined(__SANITIZE_ADDRESS__)
  std::exit(static_cast<int>(code));  // it reports leaks when the program exits
#else
  ::_exit(static_cast<int>(code));
#endif
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
  if (code != ExitCode::ok && cli::is_for_eval({argv, argv + argc}))
    tell_shell(code);
  leave(code);
}
