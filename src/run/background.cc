#include "run/background.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <type_traits>

#include "base/error.h"
#include "base/loop.h"

namespace rlock::run {
namespace {

/// The granted lock, as it is sent over the socket between the two processes.
struct Trust {
  std::array<char, lock::Token::length> token;
  std::array<char, lock::Level::length> level;
  lock::Granted grant;
};
static_assert(std::is_trivially_copyable_v<Trust>);

/// The answer to it. It proves that the process is alive: sending to one that was killed succeeds until its descriptors
/// are closed.
constexpr char acknowledgement = 1;
constexpr std::chrono::seconds longest_acknowledgement{2};

unsigned most_descriptors() {
  constexpr rlim_t most_worth_closing = 1U << 20U;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<unsigned>(std::min(limit.rlim_max, most_worth_closing));
}

/// Closes every descriptor but two. Nothing of the caller's may stay open, such as a pipe that `$(...)` reads or a file
/// that flock(1) locked.
void close_all_but(int one, int other) {
  const auto [low, high] = std::minmax(one, other);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
  const auto close_between = [](int first, unsigned last) {
    if (static_cast<unsigned>(first) > last || ::close_range(static_cast<unsigned>(first), last, 0) == 0)
      return;
    // The kernel is older than 5.9, or a seccomp filter refuses close_range.
    for (unsigned fd = static_cast<unsigned>(first); fd <= std::min(last, most_descriptors()); ++fd)
      ::close(static_cast<int>(fd));
  };
  close_between(3, static_cast<unsigned>(low - 1));
  close_between(low + 1, static_cast<unsigned>(high - 1));
  close_between(high + 1, ~0U);
}

std::optional<Trust> await_trust(const Fd& line) {
  Trust trust{};
  ssize_t count = 0;
  do {
    count = ::read(line.get(), &trust, sizeof trust);
  } while (count < 0 && errno == EINTR);
  if (count != sizeof trust ||
      ::send(line.get(), &acknowledgement, sizeof acknowledgement, MSG_NOSIGNAL) != sizeof acknowledgement)
    return std::nullopt;
  return trust;
}

bool await_acknowledgement(const Fd& line, Deadline deadline) {
  Loop loop;
  pollfd answer{line.get(), POLLIN, 0};
  Loop::Wake wake{};
  do {
    wake = loop.wait({&answer, 1}, deadline);
  } while (wake == Loop::Wake::event);
  char word = 0;
  return wake == Loop::Wake::ready && ::recv(line.get(), &word, sizeof word, MSG_DONTWAIT) == sizeof word;
}

/// All that the background process does.
[[noreturn]] void serve(const HoldPlan& plan,
                        const Process& process,
                        std::span<redis::Server> servers,
                        const Fd& line) {
  ::setsid();
  close_all_but(line.get(), process.fd());
  (void)!::chdir("/");  // the caller's directory may be on a file system that is to be unmounted
  try {
    if (const auto trust = await_trust(line)) {
      HoldPlan trusted = plan;
      trusted.claim.token = lock::Token::parse({trust->token.data(), trust->token.size()}).value();
      trusted.claim.level = lock::Level::parse({trust->level.data(), trust->level.size()}).value();
      PidKeeper{std::move(trusted), process, servers}.keep(trust->grant);
    }
  } catch (const std::exception&) {
    process.signal(plan.signal);  // nobody renews the lock from here on
  }
  ::_exit(0);
}

}  // namespace

Background Background::start(const HoldPlan& plan, const Process& process, std::span<redis::Server> servers) {
  auto [ours, theirs] = make_socket_pair();
  const pid_t pid = ::fork();
  if (pid < 0)
    throw os_error("cannot start the background process", errno);
  if (pid == 0)
    serve(plan, process, servers, theirs);
  return Background{plan.lease, pid, std::move(ours)};
}

void Background::entrust(const lock::Claim& claim, const lock::Granted& grant) const {
  Trust trust{.token = {}, .level = {}, .grant = grant};
  claim.token.text().copy(trust.token.data(), trust.token.size());
  claim.level.text().copy(trust.level.data(), trust.level.size());
  const lock::Lease lease{terms_, grant.sent, grant.unconfirmed};
  const Deadline latest = std::min(BootClock::now() + longest_acknowledgement, lease.term_at());
  if (::send(line_.get(), &trust, sizeof trust, MSG_NOSIGNAL) != sizeof trust || !await_acknowledgement(line_, latest))
    throw Error{ExitCode::internal, "the background process did not answer; the lock is given back"};
}

}  // namespace rlock::run
