#include "base/assert.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "expect.h"

namespace rlock::unit {

void test_assertions() {
  always(true, "nothing happens");
  std::array<int, 2> ends{};
  expect(::pipe(ends.data()) == 0, "there is a pipe");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    always(false, "one is two");
    ::_exit(0);
  }
  ::close(ends[1]);
  std::array<char, 256> text{};
  const ssize_t count = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "an invariant that does not hold aborts");
  const std::string_view said{text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  expect(said.starts_with("rlock: ") && said.find("assert.cc:") != said.npos, "it says where", said);
  expect(said.find(": one is two; ") != said.npos && said.ends_with("\n"), "it says what, in one line", said);
}

}  // namespace rlock::unit
